"""A2A on both sides: `wire` encodes events, `codec` decodes them, `server` serves an agent, `client` and
`a2a_remote_agent_connect` call one. Nothing here knows which agents exist or what they do.
"""
