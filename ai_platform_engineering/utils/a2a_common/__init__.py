"""A2A, both sides: `wire` encodes events, `codec` decodes them, `server` serves an agent, `client` and
`a2a_remote_agent_connect` call one. This package does not know which agents exist or what they do.
"""
