"""The sandbox: a simulated organization with sample data, in Argo CD, Jira, GitHub and PagerDuty, behind MCP tools.

It replaces the real backends while none is configured. `seed.yaml` has the sample data, `store.py` stores the records,
and each server module offers the tools of one product. Nothing here uses the network or depends on agents.
"""
