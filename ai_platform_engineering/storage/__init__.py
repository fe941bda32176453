"""What processes keep: the event log, the checkpoints of conversations, and what both share about SQLite files.

The knowledge base, the skills, the sandbox and the Slack bot have stores of their own; they use `sqlite`.
"""
