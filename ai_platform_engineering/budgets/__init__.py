"""Budgets: how much a person or a group may use per day, what it has used, and what model tokens cost.

`file.py` reads `budgets.yaml`, `decisions.py` decides. Pure, except for reading the file. The counts are stored in
`storage/usage/`; `server/usage_ledger.py` collects and enforces them.
"""
