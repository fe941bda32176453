from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import dns.flags
import dns.message
import dns.rcode
import dns.rrset
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from ai_platform_engineering.agents.netutils.server import server
from ai_platform_engineering.agents.netutils.targets import ascii_name
from ai_platform_engineering.mcp.tool_server import ToolError
from ai_platform_engineering.settings import load_settings
from tests.tool_sessions import ask, session_with

Call = Callable[..., Awaitable[dict[str, Any]]]

ZONE = {
    ("site.test", "A"): ["127.0.0.1"],
    ("broken.test", "A"): ["127.0.0.9", "127.0.0.1"],
    ("inside.test", "A"): ["10.1.2.3"],
    ("metadata.test", "A"): ["169.254.169.254"],
    ("xn--mnchen-3ya.test", "A"): ["192.0.2.80"],
    ("site.test", "MX"): ["20 second.test.", "10 first.test."],
    ("site.test", "TXT"): ['"v=spf1 -all"'],
    ("7.2.0.192.in-addr.arpa", "PTR"): ["seven.test."],
    ("8.8.8.8.in-addr.arpa", "PTR"): ["eight.test."],
}


@dataclass
class NameServer(asyncio.DatagramProtocol):
    """Answers from the zone above; a name that begins with `slow` gets no answer."""

    questions: list[tuple[str, str]] = field(default_factory=list)
    transport: asyncio.DatagramTransport | None = None

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def datagram_received(self, data: bytes, addr: Any) -> None:
        query = dns.message.from_wire(data)
        question = query.question[0]
        name, kind = question.name.to_text(omit_final_dot=True), dns.rdatatype.to_text(question.rdtype)
        self.questions.append((name, kind))
        if name.startswith("slow"):
            return
        response = dns.message.make_response(query)
        response.flags |= dns.flags.RA
        if records := ZONE.get((name, kind)):
            response.answer.append(dns.rrset.from_text(question.name, 300, "IN", kind, *records))
        elif not any(known == name for known, _ in ZONE):
            response.set_rcode(dns.rcode.NXDOMAIN)
        assert self.transport is not None
        self.transport.sendto(response.to_wire(), addr)


@pytest.fixture
async def names() -> AsyncIterator[NameServer]:
    loop = asyncio.get_running_loop()
    transport, protocol = await loop.create_datagram_endpoint(NameServer, local_addr=("127.0.0.1", 0))
    yield protocol
    transport.close()


def tools(names: NameServer | None = None, *, private: bool, timeout: float = 2.0) -> Call:
    environ = {"NETUTILS_ALLOW_PRIVATE": str(private).lower(), "NETUTILS_TIMEOUT": str(timeout)}
    if names is not None and names.transport is not None:
        environ["NETUTILS_DNS_SERVER"] = "127.0.0.1:{}".format(names.transport.get_extra_info("sockname")[1])
    network = server(load_settings(environ, env_file=None))

    async def call(tool: str, **arguments: Any) -> dict[str, Any]:
        return await ask(network, tool, arguments)

    return call


def refused(text: str) -> Any:
    return pytest.raises(ToolError, match=re.escape(text))


@dataclass
class Site:
    port: int
    requests: list[str] = field(default_factory=list)


@asynccontextmanager
async def site(
    answers: dict[str, str], context: ssl.SSLContext | None = None, host: str = "127.0.0.1"
) -> AsyncIterator[Site]:
    """A web server that sends `answers[path]`, whole responses, and remembers what it was asked."""
    running = Site(0)
    handlers: set[asyncio.Task[None]] = set()

    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = (await reader.readuntil(b"\r\n\r\n")).decode()
        running.requests.append(request)
        answer = answers.get(request.split()[1], "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")
        writer.write(answer.replace("{port}", str(running.port)).encode())
        await writer.drain()
        if "endless" in answer:
            await reader.read()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        handlers.add(task)
        with suppress(asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError):
            await respond(reader, writer)
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()

    listening = await asyncio.start_server(handle, host, 0, ssl=context)
    running.port = listening.sockets[0].getsockname()[1]
    try:
        yield running
    finally:
        listening.close()
        await asyncio.gather(*handlers)


def redirect(to: str) -> str:
    return f"HTTP/1.1 302 Found\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n"


def page(text: str, content_type: str = "text/html") -> str:
    return (
        f"HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\ncontent-length: {len(text)}\r\nserver: tiny\r\n\r\n{text}"
    )


def certificate(folder: Path, days: int, name: str = "site.test") -> tuple[ssl.SSLContext, Path]:
    """A self-signed certificate that ends in `days`, as a server's context and as a file to trust."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    end = datetime.now(UTC) + timedelta(days=days, hours=1)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(7)
        .not_valid_before(end - timedelta(days=90))
        .not_valid_after(end)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    file = folder / "certificate.pem"
    file.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    key_file = folder / "key.pem"
    key_file.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(file, key_file)
    return context, file


async def test_every_tool_only_reads_and_describes_its_arguments() -> None:
    async with session_with(server(load_settings({}, env_file=None))) as session:
        found = (await session.list_tools()).tools
    assert {tool.name for tool in found} == {
        "dns_lookup",
        "reverse_lookup",
        "check_port",
        "certificate_expiry",
        "http_check",
        "subnet_info",
        "plan_subnets",
    }
    for tool in found:
        assert tool.annotations is not None
        assert tool.annotations.readOnlyHint
        assert all("description" in schema for schema in tool.inputSchema["properties"].values())


class TestNames:
    @pytest.mark.parametrize(
        ("name", "encoded"),
        [
            ("München.test", "xn--mnchen-3ya.test"),
            ("Example.COM.", "example.com"),
            ("_sip._tcp.example.com", "_sip._tcp.example.com"),
        ],
    )
    def test_names_in_ascii(self, name: str, encoded: str) -> None:
        assert ascii_name(name) == encoded

    @pytest.mark.parametrize(
        "name", ["", "a b", "https://example.com", "-a.test", "a..b", "a" * 64, "a." * 130, "\u2028"]
    )
    def test_what_is_no_name(self, name: str) -> None:
        with refused("is not a host name"):
            ascii_name(name)


class TestLookups:
    async def test_records(self, names: NameServer) -> None:
        call = tools(names, private=False)
        assert (await call("dns_lookup", name="Site.test"))["records"] == ["127.0.0.1"]
        mail = await call("dns_lookup", name="site.test", record_type="mx")
        assert (mail["records"], mail["ttl"]) == (["10 first.test.", "20 second.test."], 300)
        assert (await call("dns_lookup", name="münchen.test"))["records"] == ["192.0.2.80"]

    async def test_no_record_is_an_answer(self, names: NameServer) -> None:
        call = tools(names, private=False)
        for name in ("nothing.test", "site.test"):
            found = await call("dns_lookup", name=name, record_type="NS")
            assert (found["records"], found["message"]) == ([], f"There is no NS record for {name}.")

    async def test_no_answer_is_told_in_time(self, names: NameServer) -> None:
        with refused("No DNS server answered for slow.test within 0.3 seconds"):
            await tools(names, private=False, timeout=0.3)("dns_lookup", name="slow.test")
        with refused("slow.test could not be resolved within 0.3 seconds"):
            await tools(names, private=False, timeout=0.3)("check_port", host="slow.test", port=80)

    async def test_an_address_is_no_name(self, names: NameServer) -> None:
        with refused("reverse_lookup finds the name"):
            await tools(names, private=False)("dns_lookup", name="192.0.2.7")

    async def test_reverse(self, names: NameServer) -> None:
        assert (await tools(names, private=False)("reverse_lookup", address="8.8.8.8"))["names"] == ["eight.test"]
        assert (await tools(names, private=False)("reverse_lookup", address="9.9.9.9"))["names"] == []
        with refused("192.0.2.7 was not looked up"):
            await tools(names, private=False)("reverse_lookup", address="192.0.2.7")
        assert (await tools(names, private=True)("reverse_lookup", address="192.0.2.7"))["names"] == ["seven.test"]
        with refused("'seven' is not an IP address"):
            await tools(names, private=False)("reverse_lookup", address="seven")


class TestPorts:
    async def test_open_and_closed(self, names: NameServer, unused_port: int) -> None:
        call = tools(names, private=True)
        async with site({}) as running:
            found = await call("check_port", host="site.test", port=running.port)
            assert (found["host"], found["state"]) == ("site.test", "open")
            assert found["addresses"][0]["address"] == "127.0.0.1"
            mixed = await call("check_port", host="broken.test", port=running.port)
            assert {entry["address"]: entry["state"] for entry in mixed["addresses"]} == {
                "127.0.0.9": "closed",
                "127.0.0.1": "open",
            }
            assert mixed["state"] == "open"
        assert (await call("check_port", host="127.0.0.1", port=unused_port))["state"] == "closed"

    @pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "localhost", "127.1", "2130706433", "0x7f000001"])
    async def test_private_targets_are_refused_however_they_are_written(self, host: str) -> None:
        async with site({}) as running:
            with refused("loopback address; NETUTILS_ALLOW_PRIVATE=true allows it"):
                await tools(private=False)("check_port", host=host, port=running.port)
            assert running.requests == []

    async def test_the_name_of_a_private_target_is_refused(self, names: NameServer) -> None:
        with refused("inside.test (10.1.2.3) was not contacted: it is a private or reserved address"):
            await tools(names, private=False)("check_port", host="inside.test", port=80)
        with refused("metadata.test (169.254.169.254) was not contacted"):
            await tools(names, private=True)("check_port", host="metadata.test", port=80)

    @pytest.mark.parametrize("port", [0, 65536, -1])
    async def test_ports_that_do_not_exist(self, port: int) -> None:
        with pytest.raises(ToolError):
            await tools(private=True)("check_port", host="127.0.0.1", port=port)

    async def test_a_name_that_does_not_exist(self, names: NameServer) -> None:
        with refused("nothing.test has no address"):
            await tools(names, private=True)("check_port", host="nothing.test", port=80)


class TestWebAddresses:
    async def test_an_answer_over_the_address_that_was_judged(self, names: NameServer) -> None:
        async with site({"/a": page("<h1>Hello</h1>\n\n" + "x" * 5000)}) as running:
            found = await tools(names, private=True)("http_check", url=f"http://site.test:{running.port}/a")
        assert (found["status"], found["reason"], found["server"]) == (200, "OK", "tiny")
        assert found["url"] == f"http://site.test:{running.port}/a"
        assert found["snippet"].startswith("<h1>Hello</h1> xxx")
        assert len(found["snippet"]) == 300
        assert f"host: site.test:{running.port}" in running.requests[0].lower()
        assert sorted(names.questions) == [("site.test", "A"), ("site.test", "AAAA")]

    async def test_redirects_are_followed_and_told(self) -> None:
        async with site({"/": redirect("/two"), "/two": redirect("http://127.0.0.1:{port}/three")}) as running:
            found = await tools(private=True)("http_check", url=f"http://127.0.0.1:{running.port}/")
        assert found["status"] == 404
        assert [address.rpartition("/")[2] for address in found["redirects"]] == ["two", "three"]

    async def test_a_redirect_to_a_forbidden_place_is_not_followed(self, names: NameServer) -> None:
        answers = {"/ip": redirect("http://169.254.169.254/latest/"), "/name": redirect("http://metadata.test/latest/")}
        async with site(answers) as running:
            for path in answers:
                with refused("169.254.169.254"):
                    await tools(names, private=True)("http_check", url=f"http://127.0.0.1:{running.port}{path}")

    @pytest.mark.parametrize("to", ["file:///etc/passwd", "ftp://127.0.0.1/", "http://user:secret@127.0.0.1/"])
    async def test_a_redirect_to_something_else_is_not_followed(self, to: str) -> None:
        async with site({"/": redirect(to)}) as running:
            with pytest.raises(ToolError) as raised:
                await tools(private=True)("http_check", url=f"http://127.0.0.1:{running.port}/")
        assert "only addresses with http:// or https://" in str(raised.value) or "password" in str(raised.value)
        assert "secret" not in str(raised.value)

    async def test_redirects_end(self) -> None:
        async with site({"/": redirect("/")}) as running:
            with refused("redirects more than 3 times"):
                await tools(private=True)("http_check", url=f"http://127.0.0.1:{running.port}/")
            assert len(running.requests) == 4

    async def test_private_targets_are_refused(self) -> None:
        async with site({"/": page("secret")}) as running:
            for host in ("127.0.0.1", "localhost", "[::ffff:127.0.0.1]"):
                with refused("loopback address"):
                    await tools(private=False)("http_check", url=f"http://{host}:{running.port}/")
            assert running.requests == []

    async def test_a_slow_answer_ends_in_time(self) -> None:
        slow = "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nx-endless: yes\r\ncontent-length: 9000\r\n\r\nbegin"
        async with site({"/": slow}) as running:
            with refused("did not answer within 0.3 seconds"):
                await tools(private=True, timeout=0.3)("http_check", url=f"http://127.0.0.1:{running.port}/")

    async def test_only_the_beginning_of_text_is_read(self) -> None:
        endless = "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nx-endless: yes\r\n\r\n" + "y" * 9000
        picture = "HTTP/1.1 200 OK\r\ncontent-type: image/png\r\ncontent-length: 4\r\n\r\n1234"
        packed = (
            "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-encoding: gzip\r\ncontent-length: 4\r\n\r\n1234"
        )
        async with site({"/": endless, "/picture": picture, "/packed": packed}) as running:
            address = f"http://127.0.0.1:{running.port}"
            assert (await tools(private=True)("http_check", url=f"{address}/"))["snippet"] == "y" * 300
            assert "snippet" not in await tools(private=True)("http_check", url=f"{address}/picture")
            assert "snippet" not in await tools(private=True)("http_check", url=f"{address}/packed")

    async def test_over_ipv6(self) -> None:
        try:
            running_site = site({"/": page("six")}, host="::1")
            async with running_site as running:
                found = await tools(private=True)("http_check", url=f"http://[::1]:{running.port}/")
        except OSError:
            pytest.skip("this machine has no IPv6 loopback")
        assert found["snippet"] == "six"

    @pytest.mark.parametrize(
        "url", ["", "example.com", "gopher://example.com", "http://", "http://a b/", "http://[::1"]
    )
    async def test_what_is_no_web_address(self, url: str) -> None:
        with pytest.raises(ToolError, match=r"web address|only addresses|host name"):
            await tools(private=True)("http_check", url=url)

    async def test_a_host_that_does_not_answer(self, unused_port: int) -> None:
        with refused("could not be reached"):
            await tools(private=True)("http_check", url=f"http://127.0.0.1:{unused_port}/")

    async def test_https_checks_the_certificate_of_the_name(
        self, names: NameServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        context, trusted = certificate(tmp_path, days=30)
        async with site({"/": page("safe")}, context) as running:
            url = f"https://site.test:{running.port}/"
            with refused("certificate verify failed"):
                await tools(names, private=True)("http_check", url=url)
            monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
            assert (await tools(names, private=True)("http_check", url=url))["snippet"] == "safe"
            with refused("certificate verify failed"):
                await tools(names, private=True)("http_check", url=f"https://127.0.0.1:{running.port}/")


class TestCertificates:
    async def test_one_that_is_trusted(
        self, names: NameServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        context, trusted = certificate(tmp_path, days=30)
        monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
        async with site({}, context) as running:
            found = await tools(names, private=True)("certificate_expiry", host="site.test", port=running.port)
        assert (found["days_left"], found["expired"], found["trusted"]) == (30, False, True)
        assert (found["subject"], found["names"]) == ("CN=site.test", ["site.test"])
        assert "problem" not in found

    @pytest.mark.parametrize(("days", "expired"), [(30, False), (-3, True)])
    async def test_one_that_is_not(self, tmp_path: Path, days: int, expired: bool) -> None:
        context, _ = certificate(tmp_path, days=days)
        async with site({}, context) as running:
            found = await tools(private=True)("certificate_expiry", host="127.0.0.1", port=running.port)
        assert (found["days_left"], found["expired"], found["trusted"]) == (days, expired, False)
        assert found["problem"]

    async def test_what_does_not_speak_tls(self, unused_port: int) -> None:
        async with site({}) as running:
            with pytest.raises(ToolError, match=r"does not speak TLS|did not finish|cannot be reached"):
                await tools(private=True, timeout=1)("certificate_expiry", host="127.0.0.1", port=running.port)
        with refused("cannot be reached"):
            await tools(private=True)("certificate_expiry", host="127.0.0.1", port=unused_port)

    async def test_private_targets_are_refused(self) -> None:
        with refused("loopback address"):
            await tools(private=False)("certificate_expiry", host="localhost")


class TestSubnets:
    async def test_by_count(self) -> None:
        found = await tools(private=False)("plan_subnets", cidr="10.0.0.0/16", count=3)
        assert (found["new_prefix"], found["total"], found["shown"], found["spare"]) == (18, 4, 3, 1)
        assert found["subnets"][1] == {
            "subnet": "10.0.64.0/18",
            "first_host": "10.0.64.1",
            "last_host": "10.0.127.254",
            "hosts": 16382,
        }

    async def test_by_prefix_with_the_rest_counted(self) -> None:
        found = await tools(private=False)("plan_subnets", cidr="10.0.0.0/8", new_prefix=24)
        assert (found["total"], found["shown"], len(found["subnets"])) == (65536, 64, 64)

    async def test_large_numbers_keep_their_digits(self) -> None:
        found = await tools(private=False)("plan_subnets", cidr="2001:db8::/32", new_prefix=128)
        assert found["total"] == str(2**96)
        assert found["subnets"][0]["hosts"] == 1

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            ({"cidr": "10.0.0.0/16"}, "either new_prefix or count"),
            ({"cidr": "10.0.0.0/16", "new_prefix": 24, "count": 4}, "either new_prefix or count"),
            ({"cidr": "10.0.0.0/16", "new_prefix": 8}, "cannot be cut into subnets of /8"),
            ({"cidr": "10.0.0.0/30", "count": 5}, "cannot be cut into 5 subnets"),
            ({"cidr": "10.0.0.0/33", "count": 2}, "is not a network"),
            ({"cidr": "10.0.0.0/16", "count": 10**30}, "cannot be cut into"),
        ],
    )
    async def test_what_cannot_be_planned(self, arguments: dict[str, Any], said: str) -> None:
        with refused(said):
            await tools(private=False)("plan_subnets", **arguments)

    @pytest.mark.parametrize(
        ("cidr", "expected"),
        [
            (
                "192.168.1.77/26",
                {"network": "192.168.1.64/26", "netmask": "255.255.255.192", "broadcast": "192.168.1.127", "hosts": 62},
            ),
            ("10.0.0.0/31", {"first_host": "10.0.0.0", "last_host": "10.0.0.1", "hosts": 2}),
            ("10.0.0.7/32", {"first_host": "10.0.0.7", "last_host": "10.0.0.7", "hosts": 1, "addresses": 1}),
            ("8.8.8.0/24", {"scope": "global"}),
            ("fe80::/64", {"scope": "link-local", "addresses": str(2**64)}),
        ],
    )
    async def test_info(self, cidr: str, expected: dict[str, Any]) -> None:
        found = await tools(private=False)("subnet_info", cidr=cidr)
        assert expected.items() <= found.items()
