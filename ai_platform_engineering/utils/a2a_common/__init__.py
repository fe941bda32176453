"""A2A on both sides: `wire` encodes events and `codec` reads them, `log` keeps them, `execution` and `http` serve an
agent, `a2a_remote_agent_connect` calls one. Nothing here knows which agents exist or what they do.
"""
