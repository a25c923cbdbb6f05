"""Blocks: attention, feed-forward network, residuals and norms as one layer."""
