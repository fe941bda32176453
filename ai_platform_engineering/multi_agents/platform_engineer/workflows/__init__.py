"""Self-service workflows: declared files, the form made from their inputs, the driver that runs their steps in order.

What a step does is the business of the agents it names; how the form travels and is answered, of `forms`.
"""
