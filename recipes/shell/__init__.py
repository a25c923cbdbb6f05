"""What stands between the shell and a recipe."""
