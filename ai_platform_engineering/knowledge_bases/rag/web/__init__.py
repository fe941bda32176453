"""The web as a place to read from: single pages, the pages below one, the pages of a sitemap.

`WebClient` makes every request; what it may contact is decided by `WebPolicy`. What a page says is read elsewhere.
"""
