"""Reading files and pages of every kind the knowledge base takes, into a title and Markdown.

`reading` is the way in; each kind has a module of its own that is imported when the first of its kind is read. Where
the bytes come from and what becomes of the text is not decided here.
"""
