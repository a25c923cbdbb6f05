"""Flags that several recipes have, and what they make of them."""
