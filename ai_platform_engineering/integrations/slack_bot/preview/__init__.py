"""What people see in Slack, without Slack: a model of a workspace that Web API calls are applied to, and its rendering.

Nothing here talks to Slack, and nothing of the bot's behaviour is decided here.
"""
