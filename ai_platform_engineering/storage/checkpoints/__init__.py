"""LangGraph checkpointers that know conversations: in a file, in memory, in memory with a file for those that wait.

Which one a server has, and when a conversation is trimmed, is decided in `utils/checkpointer.py`.
"""
