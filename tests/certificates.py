"""A short list of trusted certificates: every HTTP client loads the list of the system again, which takes 20 ms of CPU.

No test calls another machine. A list that a test names itself (`SSL_CERT_FILE`) is loaded as ever.
"""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import certifi
import pytest

_ROOT_CERTIFICATE = str(Path(__file__).with_name("fixtures") / "root_certificate.pem")


def trust_one_certificate(patch: pytest.MonkeyPatch) -> None:
    load = ssl.SSLContext.load_verify_locations
    of_the_system = {certifi.where(), ssl.get_default_verify_paths().openssl_cafile}

    def load_verify_locations(
        context: ssl.SSLContext, cafile: Any = None, capath: Any = None, cadata: Any = None
    ) -> None:
        if cafile in of_the_system and cadata is None:
            cafile, capath = _ROOT_CERTIFICATE, None
        load(context, cafile, capath, cadata)

    patch.setattr(ssl.SSLContext, "load_verify_locations", load_verify_locations)
