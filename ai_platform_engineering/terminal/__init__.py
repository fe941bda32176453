"""The terminal surface: `chat` asks the supervisor and shows the run as it happens, `replay` plays a recorded run.

`reducer` folds events into a view; `rendering` (rich) and `plain` (pipes) draw the view. All three are pure. The event
types are in `events`, the A2A client is in `utils.a2a_common.client`.
"""
