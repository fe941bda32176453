"""nginx as a proxy with TLS, from the package of the distribution."""

from __future__ import annotations

import shutil
import socket
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from tests.services.environment import not_here
from tests.services.local_server import LocalServer

# One process, which ends with the test. It writes into its own directory only.
CONFIGURATION = """
daemon off;
master_process off;
pid {directory}/nginx.pid;
error_log stderr;
events {{}}
http {{
    access_log off;
    client_body_temp_path {directory}/body;
    proxy_temp_path {directory}/proxy;
    fastcgi_temp_path {directory}/fastcgi;
    scgi_temp_path {directory}/scgi;
    uwsgi_temp_path {directory}/uwsgi;
    {site}
}}
"""


def nginx_server(site: Callable[[LocalServer], str]) -> LocalServer:
    """A server with one `server` block, which must listen on 127.0.0.1 and the server's port. Skips where there is no
    nginx."""
    program = shutil.which("nginx") or shutil.which("/usr/sbin/nginx")
    if program is None:
        not_here("nginx is not installed (apt-get install nginx installs it)")

    def command(server: LocalServer) -> Sequence[str]:
        file = server.directory / "nginx.conf"
        file.write_text(CONFIGURATION.format(directory=server.directory, site=site(server)), encoding="utf-8")
        return [program, "-p", str(server.directory), "-e", "stderr", "-c", str(file)]

    def answers(server: LocalServer) -> None:
        socket.create_connection(("127.0.0.1", server.port), timeout=5).close()

    return LocalServer(command, answers)


def self_signed(directory: Path, *names: str) -> tuple[Path, Path]:
    """A certificate for the host names, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, names[0])])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(subject, subject, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name) for name in names]), critical=False)
        .sign(key, hashes.SHA256())
    )
    files = directory / "certificate.pem", directory / "key.pem"
    files[0].write_bytes(certificate.public_bytes(Encoding.PEM))
    files[1].write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return files
