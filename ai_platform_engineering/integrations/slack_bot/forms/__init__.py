"""Forms in Slack: renders a form as message blocks or as a modal, and parses Slack's payloads into answers.

Pure functions over values. The package `ai_platform_engineering.forms` validates values; `listeners` and `web_api` do
the I/O.
"""
