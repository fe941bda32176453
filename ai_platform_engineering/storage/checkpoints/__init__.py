"""LangGraph checkpointers for conversations: in a file, on a server, in memory, or in a file only while a form is open.

`utils/checkpointer.py` chooses one; `fallback_saver.py` replaces a store that cannot be used by memory. What they need
of the internals of LangGraph's savers is in `compat/`.
"""
