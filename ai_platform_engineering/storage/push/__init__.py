"""The receivers of push notifications: their configurations, and the last event that each has got.

The delivery is in `utils/a2a_common/server/push.py`. A configuration may contain credentials of its receiver.
"""
