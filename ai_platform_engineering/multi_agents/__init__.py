"""The agents together: which there are, where each runs, and the supervisor that delegates to them.

What one agent is stands in its manifest in `agents/`; the protocol they speak is in `utils/a2a_common/`.
"""
