"""What a thread shows of a run: `content` computes it from the events, `planner` compares it with what Slack has
confirmed, `operation_builder` builds the next operation, `delivery_reports` records its result. All of it is pure.

`reducer` is the entry point: `reduce(state, event) -> (state, operations)`.
"""
