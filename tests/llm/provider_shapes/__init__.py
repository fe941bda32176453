"""The streams of the model providers' APIs, one module per wire format, and a server that sends them."""
