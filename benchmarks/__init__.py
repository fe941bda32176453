"""What a request costs: measured in one run, compared with a plain `create_deep_agent` graph.

`python -m benchmarks` measures everything; `measurements` has one module for each thing that is measured. What is
measured runs in processes of its own, so that its CPU time and memory can be told apart from the measuring.
"""
