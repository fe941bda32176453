"""OpenID Connect as servers and clients share it: the metadata of a provider, and the sign-in of a terminal.

The server's side is in `utils/a2a_common/server`: verification of tokens, and the sign-in of browsers.
"""
