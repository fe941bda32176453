"""Parts of the wire format: decoders for updates of our agents and of foreign ones, texts for people, forms, values.

Encoding is in `wire`, which is also the entry point for decoding. No I/O.
"""
