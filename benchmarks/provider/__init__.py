"""A model provider on a server of its own, and the section of docs/performance.md about requests that use it.

The measuring is in `benchmarks.measurements.provider`.
"""
