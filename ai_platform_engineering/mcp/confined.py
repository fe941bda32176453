"""The program that confines itself and then becomes a stdio server: `python confined.py RULES COMMAND ARGUMENT...`.

RULES is JSON with the fields of `confinement.Rules`. It runs as a file, without the packages of the product, so that it
adds little to the start of a server. The steps: build the Landlock rules, become another user if one is given, drop all
capabilities, apply the rules, execute the command.
"""

from __future__ import annotations

import ctypes
import json
import os
import stat
import struct
import sys

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_RULE_PATH_BENEATH = 1
_CREATE_RULESET_VERSION = 1
_PR_SET_NO_NEW_PRIVS = 38
_CAPSET = {"x86_64": 126, "aarch64": 91}
_CAPABILITY_VERSION_3 = 0x20080522

# The access rights of files and directories, in the order of their bits.
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = (1 << bit for bit in range(4))
_REFER, _TRUNCATE = 1 << 13, 1 << 14
_CHANGES = sum(1 << bit for bit in range(4, 13))
_SCOPE_ABSTRACT_SOCKETS, _SCOPE_SIGNALS = 1, 2

_TRUNCATE_VERSION, _SCOPE_VERSION = 3, 6

CLOSED, READ, WRITE = range(3)
"""What a server may do with a path: nothing but find it, read and execute it, or also change it."""
_ACCESS = {READ: _EXECUTE | _READ_FILE | _READ_DIR}
_ACCESS[WRITE] = _ACCESS[READ] | _WRITE_FILE | _CHANGES | _REFER | _TRUNCATE
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE
# A directory with more entries is closed as a whole, if something in it is.
_MAX_ENTRIES = 5000

_libc = ctypes.CDLL(None, use_errno=True)


def landlock_version() -> int:
    """The version of Landlock in this kernel; 0 without it."""
    if not sys.platform.startswith("linux"):
        return 0
    return max(0, int(_libc.syscall(_CREATE_RULESET, None, 0, _CREATE_RULESET_VERSION)))


def grants(decisions: dict[str, int]) -> list[tuple[str, int]]:
    """The paths to open, each with its access rights. `decisions` has the level of paths; the longest path counts.

    Landlock can only open paths, with everything below. So a directory that contains a path of a lower level is opened
    entry by entry, as it is now. Links are left out: their targets count.
    """
    found: list[tuple[str, int]] = []

    def visit(path: str, level: int) -> None:
        prefix = path if path == "/" else f"{path}/"
        below = [other for other in decisions if other != path and other.startswith(prefix)]
        lower = [other for other in below if decisions[other] < level]
        if level > CLOSED and not lower:
            found.append((path, _ACCESS[level]))
            children = {other for other in below if decisions[other] > level}
        elif level > CLOSED:
            if not any(decisions[other] == CLOSED and os.path.isdir(other) for other in lower):  # noqa: PTH112 - pathlib is slow to import
                # Python finds the modules next to a script by listing the directory.
                found.append((path, _READ_DIR))
            children = _entries(path)
        else:
            children = {prefix + other[len(prefix) :].split("/", 1)[0] for other in below}
        for child in sorted(children):
            visit(child, decisions.get(child, level))

    visit("/", decisions.get("/", READ))
    return found


def _entries(directory: str) -> set[str]:
    try:
        with os.scandir(directory) as entries:
            found = {entry.path for entry in entries if not entry.is_symlink()}
    except OSError:
        return set()
    return found if len(found) <= _MAX_ENTRIES else set()


def _ruleset(version: int, decisions: dict[str, int]) -> int:
    """The file descriptor of a ruleset."""
    handled = _ACCESS[WRITE] & (~0 if version >= _TRUNCATE_VERSION else ~_TRUNCATE)
    attributes = struct.pack("=Q", handled)
    if version >= _SCOPE_VERSION:
        attributes = struct.pack("=QQQ", handled, 0, _SCOPE_ABSTRACT_SOCKETS | _SCOPE_SIGNALS)
    ruleset = int(_libc.syscall(_CREATE_RULESET, attributes, len(attributes), 0))
    if ruleset < 0:
        raise _error("creating the Landlock rules")
    for path, access in grants(decisions):
        _allow(ruleset, path, access & handled)
    return ruleset


def _allow(ruleset: int, path: str, access: int) -> None:
    try:
        file = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        # It does not exist, or this user cannot reach it.
        return
    try:
        if not stat.S_ISDIR(os.fstat(file).st_mode):
            access &= _OF_FILES
        if access and _libc.syscall(_ADD_RULE, ruleset, _RULE_PATH_BENEATH, struct.pack("=Qi", access, file), 0) != 0:
            raise _error(f"the Landlock rule for {path}")
    finally:
        os.close(file)


def _become(user: int, group: int) -> None:
    os.setgroups([])
    os.setresgid(group, group, group)
    os.setresuid(user, user, user)


def _drop_capabilities() -> None:
    """Root without capabilities is subject to the permissions of files, and cannot read the memory of others."""
    number = _CAPSET.get(os.uname().machine)
    if number is None:
        return
    header, nothing = struct.pack("=Ii", _CAPABILITY_VERSION_3, 0), bytes(24)
    if _libc.syscall(number, header, nothing) != 0:
        raise _error("dropping the capabilities")


def _error(action: str) -> OSError:
    return OSError(f"{action} failed: {os.strerror(ctypes.get_errno())}")


def main(rules: str, command: str, *arguments: str) -> None:
    given = json.loads(rules)
    try:
        ruleset = None
        if given["landlock"]:
            ruleset = _ruleset(landlock_version(), given["decisions"])
        if given["user"]:
            _become(*given["user"])
        _drop_capabilities()
        # Also required for Landlock. Programs with the setuid bit run as the same user.
        if _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
            raise _error("PR_SET_NO_NEW_PRIVS")
        if ruleset is not None and _libc.syscall(_RESTRICT_SELF, ruleset, 0) != 0:
            raise _error("applying the Landlock rules")
        if ruleset is not None:
            os.close(ruleset)
    except OSError as error:
        sys.exit(f"The server was not started, because it cannot be confined: {error}")
    try:
        os.execve(command, [command, *arguments], os.environ)  # noqa: S606
    except OSError as error:
        sys.exit(f"{command} cannot be executed: {error.strerror}")


if __name__ == "__main__":
    main(*sys.argv[1:])
