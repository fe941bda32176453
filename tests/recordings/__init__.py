"""Runs of the product, recorded: each a conversation with its events and what a pipe was shown of them."""
