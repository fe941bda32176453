"""The knowledge base: reading documents, cutting them into chunks, keeping and searching them, serving all that.

`KnowledgeBase` is the way in. How often a model may ask, and how much of a result it gets, is not decided here.
"""
