"""Command-line programs; --help explains each of them.

Decisions: docs/decisions/recipes.md.
"""
