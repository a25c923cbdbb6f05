"""Programs for the shell; each explains itself with --help."""
