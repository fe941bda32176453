"""Tool calls of an agent: which tool serves a request, which arguments it gets, and how missing ones are obtained.

`schemas` describes tools for matching, `selection` chooses one, `arguments` fills in its arguments, `lookups` and
`forms` obtain what the request leaves out, `criteria` holds what no argument can express.
"""
