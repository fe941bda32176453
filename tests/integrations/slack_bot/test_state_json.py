"""The stored JSON of a run's state. Its keys are part of the store's format and do not change with the field names."""

from __future__ import annotations

import json

from ai_platform_engineering.integrations.slack_bot.thread_view.state import from_json, to_json

STORED = {
    "run_id": "r",
    "task_id": "t",
    "trace_id": "tr",
    "after": "1.0",
    "quiet": True,
    "begun": 1.5,
    "telling": {
        "told": "told",
        "told_files": [{"name": "a", "title": "b", "content": "c"}],
        "speeches": [{"message_id": "m", "text": "t", "ended": True}],
        "held": [{"message_id": "h", "text": "u", "ended": False}],
        "holding": True,
        "cards": {
            "plan": "p",
            "steps": [{"id": "step:1", "title": "Look", "status": "in_progress", "details": "d"}],
            "others": [{"id": "step:1", "title": "Look", "status": "in_progress", "details": "d"}],
            "calls": [{"call_id": "1", "card_id": "2"}],
            "active": ["step:1"],
            "waiting": True,
        },
        "plan_at": 3,
        "outcome": "asked",
        "answer_id": "ans",
        "closing": "clo",
        "unfiled": [{"name": "x", "title": "y", "content": "z"}],
    },
    "messages": [
        {
            "start": 0,
            "sent": 1,
            "ts": "2.0",
            "born": 3.0,
            "streaming": True,
            "end": 4,
            "plan": "p",
            "cards": [{"id": "step:1", "title": "Look", "status": "in_progress", "details": "d"}],
            "footer": "rating",
            "unsure": True,
            "gone": True,
            "rotated": True,
        }
    ],
    "forms": [
        {
            "form": {
                "form_id": "f1",
                "title": "Which?",
                "fields": [],
                "description": "",
                "response": "",
                "agent": None,
                "action_requests": [],
            },
            "ts": "3.0",
            "shown": {
                "form_id": "f1",
                "title": "Which?",
                "fields": [],
                "description": "",
                "response": "",
                "agent": None,
                "action_requests": [],
            },
            "wrong": {
                "form_id": "f1",
                "title": "Which?",
                "fields": [],
                "description": "",
                "response": "",
                "agent": None,
                "action_requests": [],
            },
            "note": "note",
            "noted": True,
            "in_words": True,
        }
    ],
    "files_sent": 2,
    "saying": {
        "message_id": "mid",
        "team": "T",
        "person": "U",
        "form_id": "f1",
        "answer": {"a": 1},
        "words": "wds",
        "note": "nt",
    },
    "sayings": [
        {"message_id": "mid2", "team": "T", "person": "U", "form_id": "", "answer": None, "words": "", "note": ""}
    ],
    "stopper": "4.0",
    "unstoppable": True,
    "stop_button_refusals": 1,
    "stopped_by": "U9",
    "flight": {
        "number": 7,
        "kind": "update",
        "place": 1,
        "start": 2,
        "upto": 3,
        "end": 4,
        "plan": "p",
        "cards": [{"id": "step:1", "title": "Look", "status": "in_progress", "details": "d"}],
        "footer": "retry",
        "form": {
            "form_id": "f1",
            "title": "Which?",
            "fields": [],
            "description": "",
            "response": "",
            "agent": None,
            "action_requests": [],
        },
        "note": "n",
    },
    "numbers": 7,
    "streams": False,
    "limit": 1000,
    "busy": {"append": 9.0},
    "failures": 3,
    "refusals": 2,
    "buffer": {"length": 1, "line": True, "sent": 2, "since": 3.0, "flushed": 4.0},
    "updated": 5.0,
    "pace": {"stream": 1.0, "update": 2.0},
    "status": "shown",
    "closed": True,
}
"""A state in which no field has its default."""


def test_a_stored_state_is_loaded_and_stored_with_the_same_keys() -> None:
    assert json.loads(to_json(from_json(json.dumps(STORED)))) == STORED
