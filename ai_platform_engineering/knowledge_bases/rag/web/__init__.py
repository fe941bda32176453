"""Reads untrusted web pages: single pages, sites and sitemaps.

`WebClient` makes every request, to the hosts and addresses that `WebPolicy` allows. `ReaderPool` converts pages to text
in separate processes.
"""
