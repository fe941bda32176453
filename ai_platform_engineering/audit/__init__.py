"""The audit record: who signed in, what was denied, approved, changed and deleted. Append-only and hash-chained.

The stores are in `storage/audit/`.
"""
