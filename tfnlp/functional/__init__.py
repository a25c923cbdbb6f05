"""The mathematics of the layers: attention, scores, masks, positions.

Decisions: docs/decisions/attention.md.
"""
