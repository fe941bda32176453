"""a2a-sdk: the types of protocol 0.3 and their conversion from and to 1.0, which the SDK keeps in `a2a.compat.v0_3`.

The SDK documents its routes for 0.3, not this package. The server uses the conversions directly, because its own routes
stream from the event log and check parameters before they convert them.
"""

from __future__ import annotations

from a2a.compat.v0_3 import a2a_v0_3_pb2 as pb2_v03
from a2a.compat.v0_3 import conversions
from a2a.compat.v0_3 import types as types_v03
from a2a.compat.v0_3.extension_headers import LEGACY_HTTP_EXTENSION_HEADER
from a2a.compat.v0_3.proto_utils import FromProto, ToProto

__all__ = ["LEGACY_HTTP_EXTENSION_HEADER", "FromProto", "ToProto", "conversions", "pb2_v03", "types_v03"]
