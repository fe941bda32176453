"""Text that all surfaces share: the words of forms, cleaning for a terminal or a message, the words of a query.

Pure functions. How a surface lays text out belongs to the surface.
"""
