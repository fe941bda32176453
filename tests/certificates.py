"""A short list of trusted certificates: every HTTP client loads the list of the system again, which takes 20 ms of CPU.

No test calls another machine. A list that a test names itself (`SSL_CERT_FILE`) is loaded as ever; one that was named
before is that of the system.
"""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import certifi
import pytest

_ROOT_CERTIFICATE = str(Path(__file__).with_name("fixtures") / "root_certificate.pem")


def trust_one_certificate(patch: pytest.MonkeyPatch) -> None:
    load, load_default = ssl.SSLContext.load_verify_locations, ssl.SSLContext.load_default_certs
    paths = ssl.get_default_verify_paths()
    # The first is that of `SSL_CERT_FILE`, as this process was started.
    of_the_system = {paths.cafile, paths.openssl_cafile, certifi.where()} - {None}

    def load_verify_locations(
        context: ssl.SSLContext, cafile: Any = None, capath: Any = None, cadata: Any = None
    ) -> None:
        if cafile in of_the_system and cadata is None:
            cafile, capath = _ROOT_CERTIFICATE, None
        load(context, cafile, capath, cadata)

    def load_default_certs(context: ssl.SSLContext, purpose: ssl.Purpose = ssl.Purpose.SERVER_AUTH) -> None:
        if ssl.get_default_verify_paths().cafile in of_the_system:
            load(context, _ROOT_CERTIFICATE)
        else:
            load_default(context, purpose)

    patch.setattr(ssl.SSLContext, "load_verify_locations", load_verify_locations)
    patch.setattr(ssl.SSLContext, "load_default_certs", load_default_certs)
