"""Planning: the parts of a request, the agent or the knowledge base that serves each, and the plan shown to people.

`references` resolves pronouns and follow-ups first; executing the plan is left to `supervisor.py`.
"""
