"""The arguments of the commands for operators and their access: sign-in, policy, audit, usage and backup."""

from __future__ import annotations

import argparse
from pathlib import Path

from ai_platform_engineering.cli import argument_types as types
from ai_platform_engineering.cli.command_modules import command


def add_login(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    login = commands.add_parser(
        "login",
        help="sign in at a supervisor with OpenID Connect",
        description="Signs in at a supervisor with OpenID Connect: shows an address and a code to confirm in a "
        "browser, and stores the tokens for all commands with --url, until `logout`.",
    )
    login.set_defaults(run=command("login.run_login"), quiet=True)
    logout = commands.add_parser("logout", help="sign out at a supervisor and delete the stored tokens")
    logout.set_defaults(run=command("login.run_logout"), quiet=True)
    for parser in (login, logout):
        parser.add_argument("--url", type=types.url, help="URL of the supervisor (default: the one of the settings)")


def add_policy(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    policy = commands.add_parser("policy", help="check the policy, and explain its decisions").add_subparsers(
        metavar="ACTION", required=True
    )
    check = policy.add_parser("check", help="check the file of the policy")
    test = policy.add_parser("test", help="explain what the policy decides about a call, an agent or a skill")
    test.add_argument(
        "target",
        metavar="TARGET",
        help="for example 'argocd.sync_application(app=prod-eu)', agent:jira, skill:triage, knowledge:runbooks",
    )
    test.add_argument("--as", dest="subject", metavar="SUBJECT", help="the subject of the principal")
    test.add_argument("--group", action="append", default=[], metavar="NAME", help="a group of it; may be repeated")
    test.add_argument(
        "--effect", choices=("read", "write", "destructive"), default="write", help="of the call (default: write)"
    )
    for parser, run in ((check, "policy.check_policy"), (test, "policy.explain_decision")):
        parser.add_argument("--file", type=Path, metavar="FILE", help="the file (default: POLICY_FILE)")
        parser.set_defaults(run=command(run), quiet=True)


def add_audit(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    audit = commands.add_parser(
        "audit", help="list, verify and export the audit record: sign-ins, denials, approvals, changes"
    ).add_subparsers(metavar="ACTION", required=True)
    listing = audit.add_parser("list", help="list entries, the newest first")
    listing.add_argument("--kind", help="only entries of this kind, for example tool_call_finished or sign_in_refused")
    listing.add_argument("--subject", metavar="SUB", help="only entries of this caller")
    listing.add_argument("--since", metavar="TIME", type=types.moment, help="only entries since this time, in UTC")
    listing.add_argument("--task", metavar="ID", help="only entries of this task")
    listing.add_argument("--limit", type=types.count, default=50, help="maximum number (default 50)")
    listing.add_argument("--json", action="store_true", help="print one JSON object per entry")
    listing.set_defaults(run=command("audit.list_entries"), quiet=True)
    verify = audit.add_parser(
        "verify",
        help="find entries that were changed, removed, inserted or moved",
        description="Verifies the hashes of the record. The exit code is 0 if it is intact, 1 if not, 2 if arguments "
        "or settings are invalid, for example if the record was written with AUDIT_KEY and the key is not set.",
    )
    verify.add_argument("--file", metavar="FILE", type=Path, help="verify an export instead of the stored record")
    verify.add_argument(
        "--head",
        metavar="SEQ:HASH",
        type=types.head,
        help="an entry that the record must have, from the output of an earlier verification",
    )
    verify.set_defaults(run=command("audit.verify_record"), quiet=True)
    export = audit.add_parser("export", help="write all entries as JSON lines, which audit verify --file accepts")
    export.add_argument("-o", "--output", metavar="FILE", type=Path, help="file to write (default: standard output)")
    export.set_defaults(run=command("audit.export_entries"), quiet=True)
    for action in (listing, verify, export):
        action.add_argument("--agent", metavar="NAME", help="record of this agent's server instead of the supervisor's")


def add_backup(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    backup = commands.add_parser(
        "backup",
        help="copy the data directory, also while a supervisor runs",
        description="Copies the databases and other files of DATA_DIR to a new directory. Processes may go on writing: "
        "the copy has the state of one moment. docs/operate.md describes how to restore it.",
    )
    backup.add_argument("directory", metavar="DIR", type=Path, help="directory to create; it may exist if it is empty")
    backup.set_defaults(run=command("backup.run_backup"), quiet=True)


def add_usage(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    usage = commands.add_parser(
        "usage",
        help="show tokens, cost, runs and run time per day",
        description="Shows the stored usage of all people and groups; with --url, your own usage and limits.",
    )
    usage.add_argument("--url", type=types.url, help="URL of a running supervisor (default: read the store)")
    whose = usage.add_mutually_exclusive_group()
    whose.add_argument("--all", action="store_true", help="with --url: of all people and groups, for admins")
    whose.add_argument("--subject", metavar="SUB", help="only of this person or group:NAME; with --url, for admins")
    usage.add_argument("--days", type=types.count, default=1, help="number of days, with today (default 1)")
    usage.add_argument("--json", action="store_true", help="print one JSON object, with the models of each day")
    usage.set_defaults(run=command("usage.show_usage"), quiet=True)
