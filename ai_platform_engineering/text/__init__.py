"""Text functions that several packages share: forms as text, cleaning of untrusted text, tokens of a query.

Pure functions. The layout belongs to each surface.
"""
