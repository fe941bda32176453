"""Skills: which skill a request asks for, the steps it describes, and the turns that work through them.

`supervisor_requests` and `agent_guidance` are the entry points of the supervisor and of an agent.
"""
