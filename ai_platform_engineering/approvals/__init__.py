"""Approvals: which tool calls wait for a person, what that person is shown, and what has been approved for good.

Pure functions over values. The middleware that holds a call back is in `graphs/approval_gate.py`.
"""
