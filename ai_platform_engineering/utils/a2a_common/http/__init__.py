"""The HTTP surface of an A2A server: JSON-RPC and REST of both protocol versions, streams, errors, who may call.

What a request does is in `execution`; what it gives back is read from the `log`.
"""
