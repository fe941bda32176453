"""Files: a place to send one to, and sharing it when it is there."""

from __future__ import annotations

from typing import Any

from tests.integrations.slack_bot.standin.calls import ApiCall
from tests.integrations.slack_bot.standin.conversations import check_thread, writable
from tests.integrations.slack_bot.standin.events import message_event
from tests.integrations.slack_bot.standin.refusals import RefusedError
from tests.integrations.slack_bot.standin.state import State, Upload

Json = dict[str, Any]


def get_upload_url(state: State, call: ApiCall) -> Json:
    length = int(call.get("length") or 0)
    if length <= 0:
        raise RefusedError("invalid_arguments", "length must be more than nothing")
    file_id = state.new_id("F")
    state.uploads[file_id] = Upload(file_id, length)
    state.done(call.method, call.arguments, made=file_id)
    return {"upload_url": f"{state.url}/upload/{file_id}", "file_id": file_id}


def receive(state: State, file_id: str, content: bytes) -> bool:
    """The bytes of a file; whether they are as many as was said."""
    upload = state.uploads.get(file_id)
    if upload is None or upload.arrived or len(content) != upload.length:
        return False
    state.workspace.upload(file_id, content)
    upload.arrived = True
    return True


def complete_upload(state: State, call: ApiCall) -> Json:
    files = call.arguments["files"]
    if not isinstance(files, list) or not files:
        raise RefusedError("invalid_arguments", "files must be a list")
    uploads = [state.uploads.get(file.get("id", "")) for file in files]
    if any(upload is None or not upload.arrived for upload in uploads):
        raise RefusedError("file_not_found")
    if any(upload.shared for upload in uploads if upload):
        raise RefusedError("file_update_failed", "it is complete already", fault=False)
    if channel := call.get("channel_id"):
        conversation = writable(state, channel)
        if thread_ts := call.get("thread_ts"):
            check_thread(state, conversation.id, thread_ts)
    for upload in uploads:
        if upload:
            upload.shared = True
    ts = state.new_ts()
    state.done(call.method, call.arguments, made=ts)
    if channel:
        state.tell(message_event(state, state.workspace.messages[channel, ts]))
    return {"files": [{"id": file["id"], "title": file.get("title") or ""} for file in files]}
