"""Surfaces that are programs of their own: they speak A2A with the supervisor and something else with people.

Nothing here is imported by the supervisor.
"""
