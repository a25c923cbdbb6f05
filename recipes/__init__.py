"""Command-line programs; --help explains each of them."""
