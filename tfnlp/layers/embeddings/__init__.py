"""Tokens, segments and positions as vectors."""
