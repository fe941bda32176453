"""The Bolt listeners, one module per kind of request: messages, slash command, buttons, forms, assistant panel.

A listener parses the request, passes it to the bot (`bot_calls`) and acknowledges it. The bot does the work.
"""
