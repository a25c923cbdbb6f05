"""Attention layers, and the functions that only they use."""
