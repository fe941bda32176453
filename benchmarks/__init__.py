"""What a request costs, measured as ratios in one run against the bare stack with the same scripted model.

`python -m benchmarks` runs everything; each measurement is a process of its own, so that CPU time can be told apart.
"""
