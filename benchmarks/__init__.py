"""Benchmarks, most of them against other libraries; each file is one command."""
