"""A small simulated company, Acme: Argo CD, Jira, GitHub and PagerDuty behind MCP tools, over one SQLite file.

It stands in for the real backends while none is configured. `seed.yaml` is the company, `world.py` keeps it; each
server module turns it into one product's tools. Nothing here talks to the network or knows about agents.
"""
