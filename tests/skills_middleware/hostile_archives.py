"""A corpus of archives that no server may accept as a skill, each with the code of the problem that it must report."""

from __future__ import annotations

import bz2
import gzip
import lzma
import random
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from string import ascii_letters

from tests.skills_middleware.archive_files import (
    DOCUMENT,
    folders,
    pax_record,
    tar_blocks,
    tar_member,
    tar_of,
    zip_member,
    zip_of,
)

BOMB = 20 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class HostileArchive:
    """`code` is that of the problem. The data are built when they are needed: some take a while."""

    name: str
    code: str
    build: Callable[[], bytes]

    @property
    def data(self) -> bytes:
        return self.build()


def _zip_with(path: str, data: bytes = b"x") -> Callable[[], bytes]:
    return lambda: zip_of({path: data})


def _zip_mode(path: str, mode: int) -> Callable[[], bytes]:
    return lambda: zip_of({}, (zip_member(path, mode), b"/etc/passwd"))


def _tar_with(path: str, data: bytes = b"x") -> Callable[[], bytes]:
    return lambda: tar_of({path: data})


def _tar_kind(path: str, kind: bytes, target: str = "") -> Callable[[], bytes]:
    return lambda: tar_of({}, tar_member(path, kind, target=target))


def _documents(document: bytes) -> Callable[[], bytes]:
    return lambda: zip_of({"SKILL.md": document})


def _front_matter(extra: bytes) -> Callable[[], bytes]:
    return _documents(DOCUMENT.replace(b"---\nList", extra + b"\n---\nList"))


def _text(size: int) -> bytes:
    return "".join(random.Random(size).choices(ascii_letters, k=size)).encode()  # noqa: S311


def _raw_zip(
    *,
    claimed: int | None = None,
    flags: int = 0,
    method: int = 8,
    local_name: bytes = b"a.md",
    central_name: bytes = b"a.md",
    content: bytes = b"hello " * 20,
    checksum: int | None = None,
    copies: int = 1,
    count: int | None = None,
) -> bytes:
    """A zip archive of one entry, with any field wrong."""
    deflater = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    packed = deflater.compress(content) + deflater.flush() if method == 8 else content
    numbers = (
        zlib.crc32(content) if checksum is None else checksum,
        len(packed),
        len(content) if claimed is None else claimed,
    )
    local = struct.pack("<4s5H3L2H", b"PK\3\4", 20, flags, method, 0, 33, *numbers, len(local_name), 0)
    entry = local + local_name + packed
    central = (
        struct.pack(
            "<4s6H3L5H2L",
            b"PK\1\2",
            788,
            20,
            flags,
            method,
            0,
            33,
            *numbers,
            len(central_name),
            0,
            0,
            0,
            0,
            0,
            0,
        )
        + central_name
    ) * copies
    count = copies if count is None else count
    return entry + central + struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, count, count, len(central), len(entry), 0)


def _endless_tar() -> bytes:
    """The size of the last entry points back at the first."""
    back = b"\xff" * 4 + (-1536).to_bytes(8, "big", signed=True)
    return tar_blocks(*(("a.md", b"0", b"", None) for _ in range(4)), ("b.md", b"0", b"", back))


def _bzip2_zip() -> bytes:
    member = zip_member("a.md")
    member.compress_type = zipfile.ZIP_BZIP2
    return zip_of({}, (member, b"x" * 100))


def _duplicate_zip() -> bytes:
    # The standard library warns of a second entry of the same name, so the name is patched in.
    return zip_of({"aa.md": b"1", "ab.md": b"2"}).replace(b"ab.md", b"aa.md")


def _flipped(data: bytes, position: int) -> bytes:
    return data[:position] + bytes([data[position] ^ 0xFF]) + data[position + 1 :]


def _xz_preset_9() -> bytes:
    return lzma.compress(tar_of({}), preset=9)


_ELF = b"\x7fELF\x02\x01\x01" + bytes(40)
_PE = b"MZ\x90\x00" + bytes(60) + b"PE\0\0"
_PYC = b"\xa7\x0d\x0d\x0a" + bytes(12) + b"\xe3"
_PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)
_PRIVATE_KEY = b"-----BEGIN " + b"RSA PRIVATE KEY-----\n" + _text(64) + b"\n"
_ALIASES = b"a: &a [x, x, x]\nb: &b [*a, *a, *a]\nc: &c [*b, *b, *b]"

HOSTILE_ARCHIVES = [
    HostileArchive(name, code, build)
    for name, code, build in (
        ("zip-symbolic-link", "link", _zip_mode("passwd", stat.S_IFLNK | 0o777)),
        ("zip-pipe", "special_file", _zip_mode("pipe", stat.S_IFIFO | 0o644)),
        ("zip-device", "special_file", _zip_mode("sda", stat.S_IFBLK | 0o644)),
        ("zip-setuid", "special_permissions", _zip_mode("run.sh", stat.S_IFREG | 0o4755)),
        ("zip-absolute-path", "absolute_path", _zip_with("/etc/cron.d/job")),
        ("zip-drive-letter", "absolute_path", _zip_with("C:/Windows/a.md")),
        ("zip-network-path", "absolute_path", _zip_with("\\\\server\\share\\a.md")),
        ("zip-traversal", "path_traversal", _zip_with("../../etc/passwd")),
        ("zip-traversal-inside", "path_traversal", _zip_with("docs/../../a.md")),
        ("zip-traversal-backslash", "path_traversal", _zip_with("..\\..\\a.md")),
        ("zip-traversal-macos", "path_traversal", _zip_with("__MACOSX/../../a.md")),
        ("zip-backslash", "path_characters", _zip_with("scripts\\run.sh")),
        ("zip-nul-in-name", "path_characters", lambda: zip_of({"a.md!.sh": b"x"}).replace(b"a.md!.sh", b"a.md\0.sh")),
        ("zip-line-break-in-name", "path_characters", _zip_with("a\nb.md")),
        ("zip-bidi-name", "path_characters", _zip_with("a\u202edm.exe.md")),
        ("zip-stream-name", "path_characters", _zip_with("a.md:hidden")),
        ("zip-reserved-name", "reserved_name", _zip_with("docs/CON.md")),
        ("zip-dot-at-the-end", "reserved_name", _zip_with("SKILL.md.")),
        ("zip-long-path", "path_too_long", _zip_with("a" * 250 + ".md")),
        ("zip-deep-path", "path_too_deep", _zip_with("a/b/c/d/e/f.md")),
        ("zip-empty-name", "path", _zip_with("docs//a.md")),
        ("zip-duplicate", "duplicate_entry", _duplicate_zip),
        ("zip-names-differ-in-case", "path_conflict", lambda: zip_of({"A.md": b"1", "a.md": b"2"})),
        ("zip-names-differ-in-form", "path_conflict", lambda: zip_of({"ﬁ.md": b"1", "fi.md": b"2"})),
        ("zip-file-is-folder", "path_conflict", lambda: zip_of({"a": b"1", "a/b.md": b"2"})),
        ("zip-encrypted", "encrypted", lambda: _raw_zip(flags=1)),
        ("zip-large-file", "file_too_large", _zip_with("a.md", bytes(BOMB))),
        ("zip-large-files", "skill_too_large", lambda: zip_of({f"{each}.md": _text(200_000) for each in range(3)})),
        ("zip-bomb", "decompression_bomb", _zip_with("a.md", b"a" * 250_000)),
        ("zip-bomb-with-lying-size", "corrupt_archive", lambda: _raw_zip(content=bytes(BOMB), claimed=100)),
        ("zip-smaller-than-stated", "corrupt_archive", lambda: _raw_zip(claimed=1000)),
        ("zip-stored-with-lying-size", "corrupt_archive", lambda: _raw_zip(method=0, claimed=1000)),
        ("zip-two-names-in-headers", "corrupt_archive", lambda: _raw_zip(local_name=b"b.md")),
        ("zip-count-too-low", "duplicate_entry", lambda: _raw_zip(copies=2, count=1)),
        ("zip-overlapping", "skill_too_large", lambda: _raw_zip(copies=50, content=_text(200_000))),
        ("zip-many-folders", "too_many_entries", lambda: zip_of(dict.fromkeys(folders(300), b""))),
        ("zip-many-files", "too_many_files", lambda: zip_of({f"{each}.md": b"x" for each in range(100)})),
        ("zip-truncated", "corrupt_archive", lambda: zip_of({})[:-30]),
        ("zip-cut-entry", "corrupt_archive", lambda: _flipped(zip_of({}), 45)),
        ("zip-wrong-checksum", "corrupt_archive", lambda: _raw_zip(checksum=1)),
        ("zip-trailing-data", "trailing_data", lambda: zip_of({}) + b"#!/bin/sh\n"),
        ("zip-behind-a-program", "unknown_format", lambda: _PE + zip_of({})),
        (
            "zip-name-in-another-encoding",
            "name_encoding",
            lambda: _raw_zip(local_name=b"\x81.md", central_name=b"\x81.md"),
        ),
        ("zip-bzip2", "unsupported_compression", _bzip2_zip),
        ("zip-empty", "empty_archive", lambda: zip_of({}, document=False)),
        ("zip-macos-only", "empty_archive", lambda: zip_of({"__MACOSX/a": b"", ".DS_Store": b""}, document=False)),
        ("tar-symbolic-link", "link", _tar_kind("passwd", tarfile.SYMTYPE, "/etc/passwd")),
        ("tar-hard-link", "link", _tar_kind("passwd", tarfile.LNKTYPE, "SKILL.md")),
        ("tar-character-device", "special_file", _tar_kind("null", tarfile.CHRTYPE)),
        ("tar-block-device", "special_file", _tar_kind("sda", tarfile.BLKTYPE)),
        ("tar-pipe", "special_file", _tar_kind("pipe", tarfile.FIFOTYPE)),
        ("tar-volume", "special_file", lambda: tar_blocks(("volume", b"V", b"", None))),
        ("tar-setgid", "special_permissions", lambda: tar_of({}, tar_member("run.sh", mode=0o2755))),
        ("tar-absolute-path", "absolute_path", _tar_with("/etc/passwd")),
        ("tar-traversal", "path_traversal", _tar_with("../a.md")),
        ("tar-traversal-in-pax", "path_traversal", lambda: tar_of({}, tar_member("a", pax={"path": "../../a.md"}))),
        ("tar-duplicate", "duplicate_entry", lambda: tar_of({}, tar_member("SKILL.md"))),
        ("tar-sparse", "sparse_file", lambda: tar_blocks(("a.md", b"S", b"", None))),
        ("tar-sparse-in-pax", "sparse_file", lambda: tar_of({}, tar_member("a.md", pax={"GNU.sparse.major": "1"}))),
        ("tar-huge-name", "corrupt_archive", lambda: tar_blocks(("x", b"L", b"a" * 100_000, None))),
        (
            "tar-long-name",
            "path_too_long",
            lambda: tar_of({"a" * 5000: b""}, format_=tarfile.GNU_FORMAT),
        ),
        (
            "tar-two-sizes",
            "binary",
            lambda: tar_blocks(("x", b"x", pax_record("size", "512"), None), ("a.md", b"0", b"", None)),
        ),
        ("tar-broken-pax", "corrupt_archive", lambda: tar_blocks(("x", b"x", b"99 path=a.md\n", None))),
        ("tar-pax-without-progress", "corrupt_archive", lambda: tar_blocks(("x", b"x", b"0 a=b\n" * 9, None))),
        ("tar-name-in-another-encoding", "name_encoding", lambda: tar_blocks((b"\xe4.md", b"0", b"", None))),
        ("tar-negative-size", "corrupt_archive", lambda: tar_blocks(("a.md", b"0", b"", b"\xff" * 12))),
        ("tar-endless", "corrupt_archive", _endless_tar),
        ("tar-huge-size", "file_too_large", lambda: tar_blocks(("a.md", b"0", b"", b"\x80" + b"\x01" * 11))),
        ("tar-wrong-checksum", "corrupt_archive", lambda: _flipped(tar_of({}), 1)),
        ("tar-truncated", "corrupt_archive", lambda: tar_of({})[:1024]),
        ("tar-trailing-data", "corrupt_archive", lambda: tar_of({}) + b"#!/bin/sh\n"),
        (
            "tar-many-folders",
            "too_many_entries",
            lambda: tar_of({}, *(tar_member(each, b"5") for each in folders(300))),
        ),
        ("tar-large-files", "skill_too_large", lambda: tar_of({f"{each}.md": _text(200_000) for each in range(3)})),
        ("gzip-bomb", "decompression_bomb", lambda: gzip.compress(bytes(BOMB))),
        ("bzip2-bomb", "decompression_bomb", lambda: bz2.compress(bytes(BOMB))),
        ("xz-bomb", "decompression_bomb", lambda: lzma.compress(bytes(BOMB))),
        ("tar-gzip-bomb", "decompression_bomb", lambda: tar_of({"a.md": bytes(BOMB)}, compression="gz")),
        ("gzip-large", "archive_too_large", lambda: gzip.compress(_text(20_000) * 150)),
        ("gzip-twice", "unknown_format", lambda: gzip.compress(tar_of({}, compression="gz"))),
        ("gzip-truncated", "corrupt_archive", lambda: tar_of({}, compression="gz")[:-12]),
        ("gzip-trailing-data", "trailing_data", lambda: tar_of({}, compression="gz") + b"x"),
        ("gzip-two-members", "trailing_data", lambda: tar_of({}, compression="gz") * 2),
        ("bzip2-truncated", "corrupt_archive", lambda: tar_of({}, compression="bz2")[:-12]),
        ("xz-corrupt", "corrupt_archive", lambda: _flipped(tar_of({}, compression="xz"), 40)),
        ("xz-large-dictionary", "xz_memory", _xz_preset_9),
        ("archive-too-large", "archive_too_large", lambda: bytes(2 * 1024 * 1024)),
        ("no-bytes", "unknown_format", lambda: b""),
        ("only-text", "unknown_format", lambda: DOCUMENT),
        ("seven-zip", "unknown_format", lambda: b"7z\xbc\xaf\x27\x1c" + bytes(100)),
        ("nested-zip", "nested_archive", lambda: zip_of({"more.md": zip_of({})})),
        ("nested-tar", "nested_archive", lambda: tar_of({"more.md": tar_of({})})),
        ("nested-gzip", "nested_archive", lambda: zip_of({"more.md": gzip.compress(b"x")})),
        ("nested-archive-by-extension", "nested_archive", _zip_with("more.zip")),
        ("program-elf", "executable", _zip_with("scripts/run", _ELF)),
        ("program-windows", "executable", _zip_with("scripts/run.txt", _PE)),
        ("program-python", "executable", _zip_with("scripts/run.txt", _PYC)),
        ("program-webassembly", "executable", _zip_with("a.md", b"\0asm\1\0\0\0")),
        ("program-mach-o", "executable", _zip_with("a.md", b"\xcf\xfa\xed\xfe" + bytes(20))),
        ("program-java", "executable", _zip_with("a.md", b"\xca\xfe\xba\xbe" + bytes(20))),
        ("program-by-extension", "executable", _zip_with("library.so.6")),
        ("image", "binary", _zip_with("logo.png", _PNG)),
        ("text-in-utf-16", "encoding", _zip_with("a.md", "text".encode("utf-16"))),
        ("text-in-latin-1", "encoding", _zip_with("a.md", b"gr\xfc\xdfe")),
        ("document-missing", "document_missing", lambda: zip_of({"README.md": b"x"}, document=False)),
        ("document-in-lower-case", "document_missing", lambda: zip_of({"skill.md": DOCUMENT}, document=False)),
        ("two-skills", "several_documents", lambda: zip_of({"other/SKILL.md": DOCUMENT})),
        ("document-too-large", "document_too_large", _documents(DOCUMENT + _text(70_000))),
        ("document-without-front-matter", "front_matter", _documents(b"# Triage\n")),
        ("document-without-instructions", "instructions", _documents(b"---\nname: a\ndescription: b\n---\n\n")),
        ("yaml-bomb", "yaml_alias", _front_matter(_ALIASES)),
        ("yaml-merge", "yaml_alias", _front_matter(b"<<: *a")),
        ("yaml-nesting", "yaml_depth", _front_matter(b"a: " + b"[" * 10_000)),
        ("yaml-object", "yaml_tag", _front_matter(b"a: !!python/object/apply:os.system [id]")),
        ("yaml-duplicate-key", "yaml_duplicate_key", _front_matter(b"name: other")),
        ("yaml-large", "front_matter_too_large", _front_matter(b"a: " + _text(20_000))),
        ("yaml-two-documents", "front_matter", _front_matter(b"--- x")),
        ("yaml-broken", "yaml", _front_matter(b"a: [")),
        ("description-with-hidden-text", "characters", _front_matter(b'license: "MIT\\U000E0041"')),
        ("private-key", "secret", _zip_with("id_rsa.txt", _PRIVATE_KEY)),
        ("hidden-instructions", "tag_characters", _documents(DOCUMENT + "\U000e0049\U000e0047".encode())),
        ("reordered-text", "bidi_override", _documents(DOCUMENT + "\u202eterces".encode())),
    )
]
