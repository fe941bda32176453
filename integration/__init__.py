"""Tests of whole deployments: real processes or containers, called over HTTP.

Tests of single processes are in `tests`. Nothing here imports the product.
"""
