"""Skills as they are measured: folders of any number, and the section of docs/performance.md.

The measuring is in `benchmarks.measurements.skills`.
"""
