"""The client side of A2A: a supervisor as terminal and Slack use it, and the transport between our own processes.

The connection to a remote agent is `a2a_remote_agent_connect`, one level up.
"""
