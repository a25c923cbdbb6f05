"""Comparison of files: predictions, latency, operators, Pareto frontier."""
