"""The page of licences: a line for each package that pyproject.toml asks for."""

import itertools
import tomllib

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.release import licences


def test_every_declared_package_has_its_line():
    """After a change of pyproject.toml: `make licences`."""
    project = tomllib.loads((licences.ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    lists = [project["dependencies"], *project["optional-dependencies"].values()]
    wanted = {
        (canonicalize_name(requirement.name), str(requirement.specifier).replace(",", ", "))
        for requirement in map(Requirement, itertools.chain(*lists))
        if requirement.name != "tfnlp"
    }
    first = licences.PAGE.read_text("utf-8").partition("## Packages that these bring")[0]
    rows = [line.strip("| ").split(" | ") for line in first.splitlines() if line.startswith("| ")]
    rows = [row for row in rows if row[0] not in ("package", "---")]
    assert {(canonicalize_name(row[0]), row[1]) for row in rows} == wanted
    assert len(rows) > 40 and not any("not stated" in row for row in rows)


def test_every_package_of_the_lock_file_has_its_line():
    assert licences.PAGE.read_text("utf-8").endswith(f"\n\n{licences.web_table()}\n")
