"""The view of a run in a Slack thread: `content` computes it from the events, `planner` compares it with the state that
Slack has confirmed, `operation_builder` builds the next operation, `delivery_reports` records its result. All pure.

`reducer` is the entry point: `reduce(state, event) -> (state, operations)`.
"""
