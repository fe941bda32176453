"""Database servers that several stores use: clients, addresses without credentials, errors as `StoreError`."""
