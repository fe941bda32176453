"""The terminal: asks the supervisor and shows its run as it happens, or plays a recorded run.

A run is folded into a view (`reducer`) and drawn from it (`rendering`, `plain`); both are pure. What a run is made of
is defined in `events`, how it travels in `utils.a2a_common`.
"""
