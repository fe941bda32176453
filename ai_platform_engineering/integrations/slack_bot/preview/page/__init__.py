"""A transcript as one self-contained HTML file: no external scripts, fonts or images, no network access.

Text of models and people is untrusted; it becomes HTML only through `html.tag` and `markdown`.
"""
