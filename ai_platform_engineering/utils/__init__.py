"""Small parts that several packages use: errors, redaction, keys, tokens, logs, serving; and A2A in `a2a_common`.

Nothing here knows which agents exist or which of them are remote.
"""
