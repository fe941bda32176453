"""What Slack tells the bot, one module for each thing people can do: write, use the command, press a button, submit.

A listener understands the request, has it kept and acknowledges it; what then happens is the bot's business.
"""
