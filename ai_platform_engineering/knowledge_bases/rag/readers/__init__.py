"""Readers convert files and pages to a title and Markdown.

`reading` is the entry point. Each kind of document has a module, imported when the first document of its kind is read.
"""
