"""Whole deployments, met from outside: real processes or containers, asked over HTTP.

What one process does is tested in `tests`; nothing here imports the product.
"""
