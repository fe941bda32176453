"""The model's input and output as immutable values: conversation, bound tools, tool calls and replies.

The only modules that read LangChain's messages and tools are here and in `model.py`.
"""
