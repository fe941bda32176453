"""How the supervisor is spoken to. One folder a protocol."""
