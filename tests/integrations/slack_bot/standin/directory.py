"""Who and what there is in the workspace: people, bots, conversations, and the app that is tried."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import yaml

ConversationKind = Literal["channel", "group", "im", "mpim"]
PREFIXES: Mapping[ConversationKind, str] = {"channel": "C", "group": "G", "im": "D", "mpim": "M"}


@dataclass(slots=True)
class User:
    id: str
    name: str
    bot_id: str = ""

    @property
    def is_bot(self) -> bool:
        return bool(self.bot_id)


@dataclass(slots=True)
class Conversation:
    id: str
    name: str
    kind: ConversationKind
    members: set[str]
    archived: bool = False
    streaming_error: str = ""
    """With what streams are refused here, if they are."""


@dataclass(slots=True)
class App:
    """What the app was made with. The default is what our own manifest asks for."""

    scopes: frozenset[str]
    events: frozenset[str]
    commands: frozenset[str]
    id: str = "A0PLATFORM"
    user_id: str = "U0PLATFORM"
    bot_id: str = "B0PLATFORM"
    name: str = "platform"
    bot_token: str = "xoxb-1-2-standin"
    app_token: str = "xapp-1-A0PLATFORM-standin"
    app_scopes: frozenset[str] = frozenset({"connections:write"})
    signing_secret: str = "0123456789abcdef0123456789abcdef"

    @classmethod
    def of_manifest(cls, text: str) -> App:
        manifest: Mapping[str, Any] = yaml.safe_load(text)
        commands = manifest["features"].get("slash_commands", ())
        return cls(
            scopes=frozenset(manifest["oauth_config"]["scopes"]["bot"]),
            events=frozenset(manifest["settings"]["event_subscriptions"]["bot_events"]),
            commands=frozenset(command["command"] for command in commands),
        )


@dataclass(slots=True)
class Directory:
    app: App
    team_id: str = "T0WORKSPACE"
    team_name: str = "Workspace"
    users: dict[str, User] = field(default_factory=dict)
    conversations: dict[str, Conversation] = field(default_factory=dict)
    streaming_error: str = ""
    """With what streams are refused in the whole workspace, if they are."""
    unknown_blocks: frozenset[str] = frozenset()
    """Types of blocks that this workspace does not know yet."""

    def __post_init__(self) -> None:
        self.users[self.app.user_id] = User(self.app.user_id, self.app.name, self.app.bot_id)

    def add_user(self, name: str, *, is_bot: bool = False) -> User:
        number = len(self.users)
        user = User(f"U{number:03}{name.upper()}", name, f"B{number:03}{name.upper()}" if is_bot else "")
        self.users[user.id] = user
        return user

    def add_conversation(self, kind: ConversationKind, name: str, members: Iterable[str]) -> Conversation:
        identity = f"{PREFIXES[kind]}{len(self.conversations):03}{name.upper().replace('-', '')}"
        self.conversations[identity] = Conversation(identity, name, kind, set(members))
        return self.conversations[identity]

    def direct(self, user_id: str) -> Conversation:
        """The direct messages between a person and the app."""
        members = {user_id, self.app.user_id}
        for conversation in self.conversations.values():
            if conversation.kind == "im" and conversation.members == members:
                return conversation
        return self.add_conversation("im", self.users[user_id].name, members)
