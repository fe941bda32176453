"""Stores and replicas: what is needed to measure them, and their section in docs/performance.md.

The measurements are `stores`, `takeover`, `replicas` and `workers` in `benchmarks.measurements`.
"""
