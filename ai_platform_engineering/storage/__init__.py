"""What processes keep: the event log, the checkpoints of conversations, memories, and what these share about SQLite
files and database servers.

The knowledge base, the skills, the sandbox and the Slack bot have stores of their own; they use `sqlite`.
"""
