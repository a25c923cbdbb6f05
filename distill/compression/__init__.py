"""Smaller students: pruned, clustered, quantised."""
