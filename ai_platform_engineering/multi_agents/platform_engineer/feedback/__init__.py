"""Feedback: what people think of answers, kept in a file and sent on to Langfuse.

What a surface shows people to rate an answer with is the surface's own business.
"""
