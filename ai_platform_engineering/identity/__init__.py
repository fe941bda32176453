"""Who calls: the verified principal of a request.

The servers verify credentials (`utils/a2a_common/server/auth.py`); everything else gets the principal as a value.
"""
