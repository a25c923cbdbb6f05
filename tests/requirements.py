"""Packages that a file of requirements installs."""

import importlib.metadata
import pathlib

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = pathlib.Path(__file__).parents[1]


def read_requirements(name):
    """Return the lines of a file in `runtime/` without its comments."""
    lines = (ROOT / "runtime" / name).read_text(encoding="utf-8").splitlines()
    return [line for line in lines if not line.startswith("#")]


def installed_modules(requirements):
    """Return the names by which what pip installs for requirements is imported, a list."""
    names, wanted = set(), [*requirements]
    while wanted:
        name = canonicalize_name(Requirement(wanted.pop()).name)
        if name not in names:
            names.add(name)
            wanted += [x for x in importlib.metadata.requires(name) or [] if ";" not in x]
    return [
        top
        for top, owners in importlib.metadata.packages_distributions().items()
        if names & {canonicalize_name(owner) for owner in owners}
    ]
