"""Workflows: which one a request asks for, the input values it already states, and the report after the run.

The steps of a workflow are run outside this package: its driver takes the model's turns meanwhile.
"""
