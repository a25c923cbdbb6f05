"""The page of licences: a line for each package that pyproject.toml asks for."""

import itertools
import tomllib

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.release import licences

NO_NAME = ["License :: OSI Approved", "License :: DFSG approved"]
PACKAGES = [
    {"name": "tfnlp", "requires_dist": ["a-b>=1", 'C; extra == "more"'], "version": "1"},
    {
        "name": "a_b",
        "version": "1.5",
        "license": "Copyright\nof many",
        "classifier": ["License :: OSI Approved :: MIT License", "Topic :: Text Processing"],
        "requires_dist": ["C>=2", 'd; extra == "all"'],
    },
    {"name": "C", "version": "2", "license_expression": "LGPL-2.1-only", "license": "other"},
    {
        "name": "d",
        "version": "3",
        "license": "Apache 2.0",
        "classifier": ["License :: DFSG approved"],
    },
    {"name": "e", "version": "4", "requires_dist": ["d"]},
]


def test_the_page_names_licence_and_reason_of_each_package(monkeypatch):
    monkeypatch.setattr(licences, "declared", lambda: {"a-b": (">=1", "more")})
    lines = licences.page(PACKAGES).splitlines()
    assert "| a-b | >=1 | more | 1.5 | MIT License |  |" in lines
    rows = lines[lines.index("## Packages that these bring") + 4 :]
    assert rows == [
        "| C | a_b | LGPL-2.1-only | copyleft |",
        "| d | e | Apache 2.0 |  |",
        "| e |  | not stated |  |",
    ]


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
