"""Approvals of tool calls: effects, the form that a person sees, and grants for the rest of a conversation.

Pure functions over values. The middleware that interrupts a call is in `graphs/approval_gate.py`.
"""
