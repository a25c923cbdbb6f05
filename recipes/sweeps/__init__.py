"""Sweeps: their file, their runs and their table."""
