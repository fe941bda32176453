"""Processes that are killed, stopped or replaced in the middle of a run, and the conversation that must survive it.

`scenario.py` is the conversation, `model_server.py` its model, `client.py` a plain client, `checks.py` the properties
of a whole conversation. Each test module kills other processes.
"""
