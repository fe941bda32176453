"""A preview of Slack without Slack: a model of a workspace to which Web API calls are applied, and its rendering.

Nothing here sends requests to Slack or decides what the bot does.
"""
