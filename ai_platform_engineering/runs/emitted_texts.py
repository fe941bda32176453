"""The texts of a run: of a model turn while it is streamed, and of a resumed run as far as they were emitted before."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from langchain_core.messages import AIMessage

from ai_platform_engineering.events import TextDelta
from ai_platform_engineering.llm.thinking import VisibleText


@dataclass(slots=True)
class StreamedText:
    """The text of one message of a model turn, as far as it was streamed."""

    message_id: str
    visible: VisibleText = field(default_factory=VisibleText)
    text: str = ""


def streamed_as(message: AIMessage, streams: Sequence[StreamedText]) -> StreamedText:
    """The stream of the message. Some providers give the complete message another id than its chunks."""
    text = str(message.text)
    written = [stream for stream in streams if stream.text]
    same_id = [stream for stream in written if stream.message_id == message.id]
    same_start = [stream for stream in written if text.startswith(stream.text)]
    return next(iter(same_id or same_start[-1:]), StreamedText(str(message.id)))


@dataclass(slots=True)
class _Emitted:
    parent: str | None
    text: str = ""
    is_stored: bool = False


class EmittedTexts:
    """The messages in the history of a resumed run, and which of them the next messages supersede.

    A parent is the call id of a delegation, or None for the run's own model.
    """

    def __init__(self) -> None:
        self._messages: dict[str, _Emitted] = {}
        self._last: dict[str | None, str] = {}
        """By parent: the last message, if no call came after it."""
        self._cut: dict[str | None, str] = {}
        """By parent: a message that the next one supersedes."""
        self._repeated: dict[str | None, str] = {}
        """By delegation: a whole message that the checkpoints lack. An agent in this process writes it again; a remote
        one continues after it."""

    def __contains__(self, message_id: str) -> bool:
        return message_id in self._messages

    def add(self, delta: TextDelta) -> None:
        message = self._messages.setdefault(delta.message_id, _Emitted(delta.parent_call_id))
        message.text += delta.text
        self._last[delta.parent_call_id] = delta.message_id

    def call_started(self, parent: str | None) -> None:
        # The model's message is stored before its calls begin.
        self._last.pop(parent, None)

    def of_turn(self, turn: AIMessage, parent: str | None) -> StreamedText:
        """The message of a turn in the checkpoints, as far as it was emitted. Each message is that of one turn, also if
        another turn has the same text."""
        emitted = [
            StreamedText(message_id, text=message.text)
            for message_id, message in self._messages.items()
            if message.parent == parent and not message.is_stored
        ]
        whole = (stream for stream in emitted if stream.text == str(turn.text))
        found = next(whole, None) or streamed_as(turn, emitted)
        if found.message_id in self._messages:
            self._messages[found.message_id].is_stored = True
        return found

    def resume(self, open_messages: Collection[str]) -> None:
        """Decide which messages are superseded: the last ones that are not in the checkpoints."""
        last = {parent: found for parent, found in self._last.items() if not self._messages[found].is_stored}
        self._cut = {parent: found for parent, found in last.items() if parent is None or found in open_messages}
        self._repeated = {parent: found for parent, found in last.items() if parent not in self._cut}

    def superseded_by(self, message_id: str, parent: str | None) -> str | None:
        """The message that a text of this message supersedes."""
        superseded = self._cut.pop(parent, None) or self._repeated.pop(parent, None)
        return superseded if superseded != message_id else None

    def rest(self, delta: TextDelta, delegation: str) -> str:
        """The text of a remote agent's delta without the part that was emitted. A resumed run gets the whole stream of
        the agent again."""
        self._repeated.pop(delegation, None)
        message = self._messages.get(delta.message_id)
        if message is None:
            if delta.supersedes is not None:
                self._cut[delegation] = delta.supersedes
            return delta.text
        emitted, message.text = message.text, message.text[len(delta.text) :]
        return delta.text[len(emitted) :]
