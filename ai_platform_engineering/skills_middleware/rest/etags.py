"""Entity tags: the digest of a skill in quotes. Pure functions."""

from __future__ import annotations

import hashlib


def etag(digest: str) -> str:
    return f'"{digest}"'


def body_etag(body: bytes) -> str:
    return etag(hashlib.sha256(body).hexdigest()[:32])


def is_any(header: str) -> bool:
    return header.strip() == "*"


def names(header: str, tag: str) -> bool:
    """Whether a header If-Match or If-None-Match has the tag. Weak tags and tags without quotes are accepted."""
    sent = (each.strip().removeprefix("W/").strip('"') for each in header.split(","))
    return is_any(header) or tag.strip('"') in sent
