"""Files that are not text: programs, archives, and other binary formats."""

from __future__ import annotations

import codecs
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Binary:
    """A binary format. `code` is the code of the problem; `description` completes "the file is"."""

    code: str
    description: str


def _executable(what: str) -> Binary:
    return Binary("executable", what)


def _archive(what: str) -> Binary:
    return Binary("nested_archive", what)


_MAGIC: Final = {
    b"\x7fELF": _executable("an ELF program"),
    b"\xfe\xed\xfa\xce": _executable("a Mach-O program"),
    b"\xfe\xed\xfa\xcf": _executable("a Mach-O program"),
    b"\xce\xfa\xed\xfe": _executable("a Mach-O program"),
    b"\xcf\xfa\xed\xfe": _executable("a Mach-O program"),
    b"\xca\xfe\xba\xbe": _executable("a Java class or a Mach-O program"),
    b"\x00asm": _executable("a WebAssembly module"),
    b"!<arch>\n": _executable("a static library or a package"),
    b"dex\n03": _executable("an Android program"),
    b"PK\x03\x04": _archive("a zip archive"),
    b"PK\x05\x06": _archive("a zip archive"),
    b"\x1f\x8b": _archive("a gzip archive"),
    b"BZh91AY&SY": _archive("a bzip2 archive"),
    b"\xfd7zXZ\x00": _archive("an xz archive"),
    b"7z\xbc\xaf\x27\x1c": _archive("a 7z archive"),
    b"Rar!\x1a\x07": _archive("a RAR archive"),
    b"\x28\xb5\x2f\xfd": _archive("a zstd archive"),
}
_EXECUTABLE_EXTENSIONS: Final = frozenset(
    {".apk", ".class", ".com", ".deb", ".dex", ".dll", ".dmg", ".dylib", ".exe", ".jar", ".ko", ".msi", ".node"}
    | {".pyc", ".pyd", ".pyo", ".rpm", ".scr", ".so", ".war", ".wasm", ".whl"}
)
_ARCHIVE_EXTENSIONS: Final = frozenset(
    {".7z", ".bz2", ".gz", ".rar", ".tar", ".tbz2", ".tgz", ".txz", ".xz", ".zip", ".zst"}
)


def binary_kind(path: str, data: bytes) -> Binary | None:
    """The binary format of a file, by its first bytes and its extension; None for text."""
    return _by_magic(data) or _by_extension(path) or _by_bytes(data)


def _by_magic(data: bytes) -> Binary | None:
    for magic, kind in _MAGIC.items():
        if data.startswith(magic):
            return kind
    # A text can start with the same bytes as these formats, so more than the first bytes is compared.
    if b"\0" in data:
        if data.startswith(b"MZ"):
            return _executable("a Windows program")
        if data[1:4] in {b"\r\r\n", b"\x0e\r\n"}:
            return _executable("compiled Python")
        if data[257:262] == b"ustar":
            return _archive("a tar archive")
    return None


def _by_extension(path: str) -> Binary | None:
    name = path.rpartition("/")[2].lower()
    # The extension of a shared library may be followed by its version.
    extension = ".so" if ".so." in name else f".{name.rpartition('.')[2]}"
    if extension in _EXECUTABLE_EXTENSIONS:
        return _executable(f"a program by its extension {extension}")
    if extension in _ARCHIVE_EXTENSIONS:
        return _archive(f"an archive by its extension {extension}")
    return None


def _by_bytes(data: bytes) -> Binary | None:
    # UTF-16 is text with NUL bytes: decoding reports it.
    if b"\0" in data and not data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return Binary("binary", "binary: it has a NUL byte")
    return None
