"""Results of tool calls: parsed from JSON text, rendered as Markdown, and read field by field.

Requests and criteria are not known here; `answers.filtering` applies them to the fields.
"""
