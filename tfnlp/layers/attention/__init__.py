"""Attention layers, and the functions that only they use.

Decisions: docs/decisions/attention.md.
"""
