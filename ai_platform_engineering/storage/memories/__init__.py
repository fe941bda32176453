"""The store of memories: what people ask the supervisor to remember, per owner.

`memories.py` has the operations and their limits; `stores.py` selects the store of the settings. The tools of the
supervisor's model, the HTTP routes and the command line use `Memories` only.
"""
