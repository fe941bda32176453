"""Small modules that several packages use: errors, redaction, keys, tokens, logs, serving; and A2A in `a2a_common`.

None of them knows which agents exist or which are remote.
"""
