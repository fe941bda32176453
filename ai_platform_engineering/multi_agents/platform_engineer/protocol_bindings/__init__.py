"""Protocols over which the supervisor is called, one folder each."""
