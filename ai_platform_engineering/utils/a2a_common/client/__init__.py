"""The client side of A2A: the supervisor client of the terminal and of Slack, and the transport between our own
processes. The connection to a remote agent is `a2a_remote_agent_connect`, one level up.
"""
