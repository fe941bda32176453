"""The agents of one process: registry, placement, and the supervisor that delegates to them.

Manifests of single agents are in `agents/`, the A2A protocol is in `utils/a2a_common/`.
"""
