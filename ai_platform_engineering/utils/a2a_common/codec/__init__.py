"""Reading and wording what goes over the wire: decoding of our own updates and of agents that are not ours, the texts
people see, forms and values. Encoding is in `wire`, which is the way in; nothing here talks to a socket.
"""
