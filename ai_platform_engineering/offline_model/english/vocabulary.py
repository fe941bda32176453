"""The vocabulary of operations: stop words, verbs grouped by purpose, states, synonyms.

It names no product: names of agents and tools come from their descriptions.
"""

from __future__ import annotations

from typing import Final


def word_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


STOP_WORDS: Final = word_set("""
    a about all also am an and any are as ask at be been being both but by can could current currently did do does
    each every for from give go had has have having he hello her here hey hi him his how i i'd i'm if in into is it
    it's its just kindly latest let let's like many me mine more most much my need new no not now of off ok okay on one
    ones only or other others our out over part please really recent right s see she should so some still tell than
    thank thanks that the their them then there there's these they thing things this those to too up us use using very
    via want was way we were what what's when where which who who's whose why will with would yes you your again same
""")
"""Words that carry no information about a request. Compared before stemming."""

LIST_VERBS: Final = word_set("list search find query enumerate browse")
GET_VERBS: Final = word_set(
    "get show read describe fetch view display inspect check lookup look compare summarize summarise"
)
READ_VERBS: Final = (
    LIST_VERBS | GET_VERBS | word_set("give tell explain report count print know see watch retrieve return")
)
ASKING_VERBS: Final = READ_VERBS | word_set("plan split calculate compute test verify trace ping")
"""Verbs of requests that only read or compute."""
CREATE_VERBS: Final = word_set("create open file raise make add log")
CHANGE_VERBS: Final = CREATE_VERBS | word_set("""
    acknowledge ack annotate apply approve archive assign cancel change clear close comment delete deploy destroy
    disable drop edit enable escalate execute fix grant install invite kill label link lock merge modify move patch
    pause post promote publish purge put reassign rebase rebuild reboot redeploy refresh reject release remove rename
    reopen replace reply rerun reset resize resolve restart restore resume resync retry revert revoke rollback rotate
    run save scale send set silence snooze start stop submit suspend sync synchronise synchronize terminate transition
    trigger unassign uninstall unlock update upgrade upload write
""")
LIGHT_VERBS: Final = word_set("run trigger start perform execute do initiate make")
"""Light verbs before a noun that states the change: "trigger a sync" asks for a sync."""

GENERAL_NOUNS: Final = word_set("""
    status state states health detail details info information overview summary version versions list result results
    problem problems error errors failure failures name names number count history log logs event events policy window
    time times date frequency notes today yesterday week month everything anything something team first second third
    fourth fifth last next previous difference differences wrong trouble total type kind
""")
"""Nouns that ask for a property of a thing and are never its name."""

STATES: Final = word_set("""
    open closed merged healthy unhealthy degraded progressing suspended missing synced pending running done resolved
    triggered acknowledged active inactive enabled disabled blocked broken failing failed down up ready stopped public
    private highest high medium low lowest urgent critical major minor
""")
"""Words for the state of a thing, which are never its name."""

CREATED: Final = word_set("created opened reported filed raised logged triggered started happened occurred")
UPDATED: Final = word_set("updated changed modified touched edited")
DEPLOYED: Final = word_set("deployed released shipped rolled pushed committed")
"""Like `CREATED` and `UPDATED`: events in the life of a thing, which select the date field that a request means."""

QUESTION_WORDS: Final = word_set("who what which when where why how whose is are does do did has have can was were")
NEGATIONS: Final = word_set("not don't dont never without no isn't aren't")
POLITE: Final = word_set("""
    please kindly can could would will you i i'd i'll we want need like to let's lets just go ahead and then also now ok
    okay hey hi hello help me us should must yes sure so
""")
DETERMINERS: Final = word_set("a an the this that these those my our your new another all every each it them")

PHRASES: Final = (
    (r"\bon[\s_-]*calls?\b", "oncall"),
    (r"\broll(?:ed|ing|s)?[\s_-]+back\b", "rollback"),
    (r"\broll(?:ed|ing|s)?\s+((?:\S+\s+){1,3}?)back\b", r"rollback \1"),
    (r"\bpull[\s_-]+request(s?)\b", r"pullrequest\1"),
    (r"\bmerge[\s_-]+request(s?)\b", r"mergerequest\1"),
    (r"(?-i:\bPR(s?)\b)", r"pullrequest\1"),
    (r"(?-i:\bMR(s?)\b)", r"mergerequest\1"),
    (r"\blook(?:ing|s)?[\s_-]+up\b", "lookup"),
    (r"\bre-(?=sync|deploy|start|run|open)", "re"),
)
"""Fixed phrases as patterns, and the one word that replaces each."""

SYNONYMS: Final = (
    ("application", "app"),
    ("issue", "ticket", "bug"),
    ("repository", "repo"),
    ("pullrequest", "mergerequest"),
    ("incident", "alert", "outage"),
    ("certificate", "cert", "tls", "ssl"),
    ("kubernetes", "k8s"),
    ("environment", "env"),
    ("configuration", "config"),
    ("document", "doc"),
    ("history", "deployments"),
    ("schedule", "rota", "roster"),
    ("delete", "remove", "destroy"),
    ("create", "open", "file", "raise", "make", "log", "add"),
    ("sync", "resync", "synchronise", "synchronize"),
    ("acknowledge", "ack"),
    ("rollback", "revert"),
    ("resolve", "close"),
    ("resolve", "lookup"),
    ("transition", "move", "close", "reopen"),
    ("degraded", "unhealthy", "broken", "failing", "failed", "down"),
)

_TROUBLE = word_set("wrong broken broke failing fail failed failure down trouble degraded crash crashing outage")
ASSOCIATIONS: Final = {
    **dict.fromkeys(_TROUBLE, ("health", "incident")),
    **dict.fromkeys(("healthy", "unhealthy"), ("health",)),
    "deployed": ("history",),
}
"""Related words that are not synonyms."""

SHAPE_ASSOCIATIONS: Final = {
    "key": ("ticket",),
    "cidr": ("subnet", "network"),
    "address": ("ip", "network"),
    "url": ("url", "http"),
    "host": ("hostname", "dns"),
}
"""Words related to a token of a certain shape."""

PREPOSITIONS: Final = word_set("in on of for from at with within")
