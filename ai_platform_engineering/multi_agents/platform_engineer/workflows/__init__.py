"""Self-service workflows: definition files, the form for their inputs, and the driver that runs their steps in order.

Agents execute the steps; `forms` validates the answers to the form.
"""


class WorkflowError(Exception):
    """A workflow cannot be used. The text names the file, the key and the allowed values."""
