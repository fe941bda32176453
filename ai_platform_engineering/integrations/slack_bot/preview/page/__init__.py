"""A transcript as one HTML file that needs nothing else: no script of others, no font, no picture, no network.

Text of models and people is hostile here; it becomes HTML only through `html.tag` and `markdown`.
"""
