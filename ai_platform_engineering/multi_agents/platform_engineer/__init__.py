"""The supervisor: its prompt, its plan tool and its graph over the registry's agents. Serving it lives below.

What every agent's graph has in common is in `graphs`.
"""
