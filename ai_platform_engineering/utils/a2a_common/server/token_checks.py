"""The checks of verified tokens that depend on their kind: an access token, or the ID token of a sign-in.

Pure functions; `issuer.py` has checked the signature, the issuer, the audience and the times before.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Mapping
from typing import Any, Final, Literal

import jwt

Kind = Literal["access token", "ID token"]

_ACCESS_TYPES: Final = frozenset({"at+jwt", "application/at+jwt"})
"""RFC 9068."""
_PLAIN_TYPES: Final = frozenset({"jwt", ""})
_ID_TOKEN_CLAIMS: Final = frozenset({"at_hash", "c_hash", "nonce"})


class TokenRefusedError(Exception):
    """The token is not valid; the text is a sentence for its sender."""


def check_access_token(header: Mapping[str, Any], claims: Mapping[str, Any]) -> None:
    """Raise `TokenRefusedError` if the token is recognisably of another kind.

    Its type is in the header (RFC 9068) or, from Keycloak, in the claim `typ`. Others have claims of ID tokens only.
    """
    stated, claimed = str(header.get("typ") or "").lower(), claims.get("typ")
    if stated in _ACCESS_TYPES or (stated in _PLAIN_TYPES and claimed == "Bearer"):
        return
    if stated not in _PLAIN_TYPES or isinstance(claimed, str) or not _ID_TOKEN_CLAIMS.isdisjoint(claims):
        raise TokenRefusedError("The bearer value is a token of another kind: send the access token.")


def check_id_token(
    header: Mapping[str, Any], claims: Mapping[str, Any], client_id: str, nonce: str, access_token: str | None
) -> None:
    """Raise `TokenRefusedError` if the token does not belong to this client and this sign-in."""
    sent = claims.get("nonce")
    if not isinstance(sent, str) or not hmac.compare_digest(sent.encode(errors="replace"), nonce.encode()):
        raise TokenRefusedError("The ID token belongs to another sign-in.")
    party, audience = claims.get("azp"), claims.get("aud")
    has_others = isinstance(audience, list) and len(audience) > 1
    if party != client_id and (party is not None or has_others):
        raise TokenRefusedError("The ID token was issued for another client.")
    expected = claims.get("at_hash")
    if expected is not None and (access_token is None or expected != _half_hash(access_token, header["alg"])):
        raise TokenRefusedError("The ID token does not belong to the access token.")


def reason(error: jwt.PyJWTError, kind: Kind) -> str:
    """Why a token is not valid, as a sentence."""
    match error:
        case jwt.ExpiredSignatureError():
            return f"The {kind} has expired."
        case jwt.ImmatureSignatureError():
            return f"The {kind} is not valid yet, or the clocks differ."
        case jwt.InvalidAudienceError() | jwt.MissingRequiredClaimError(claim="aud"):
            return f"The {kind} was issued for another audience."
        case jwt.InvalidIssuerError():
            return f"The {kind} is from another issuer."
        case _:
            return f"The {kind} cannot be used: a claim is missing or not valid."


def _half_hash(text: str, algorithm: str) -> str:
    """The left half of the hash of the signature algorithm, as OpenID Connect writes it into `at_hash`."""
    digest = hashlib.new("sha512" if algorithm == "EdDSA" else f"sha{algorithm[2:]}", text.encode()).digest()
    return base64.urlsafe_b64encode(digest[: len(digest) // 2]).rstrip(b"=").decode()
