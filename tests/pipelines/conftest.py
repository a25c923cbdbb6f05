"""A small model of each kind, as a folder and as a file."""

from tests.distill.conftest import files, folders, folders_and_files  # noqa: F401
