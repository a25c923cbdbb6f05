"""Command line, errors and runs of the recipes, between the shell and the library."""
