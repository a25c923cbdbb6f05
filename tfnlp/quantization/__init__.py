"""Quantisation-aware training: rounding in the products of layers.

Decisions: docs/decisions/compression.md.
"""
