"""The one guard of outgoing connections: which addresses may be contacted, and connections to checked addresses only.

`addresses.py` has the refused networks, `policy.py` the rules of one user of the guard, `transport.py` the HTTP
transport. Clients of vendors' SDKs (model providers, Slack, tracing) do not use it.
"""
