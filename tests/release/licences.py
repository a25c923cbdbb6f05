"""Licences of all packages that tfnlp installs, as docs/licences.md: `make licences` runs this.

pip resolves every extra without installing it, and reports what each package says of itself.
"""

import collections
import json
import pathlib
import re
import subprocess
import sys
import tomllib

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = pathlib.Path(__file__).parents[2]
PAGE = ROOT / "docs" / "licences.md"
LOCK = ROOT / "distill" / "export" / "web" / "package-lock.json"
EXTRAS = "test,parity,benchmarks,cuda,docs"  # with these all but Beam and trackers
# The longest text of the field "License" that is a name: others hold the licence itself.
LONGEST = 60
CLASSIFIER = re.compile(r"License :: (?:OSI Approved :: )?(.*)")
NO_LICENCE = ("DFSG approved", "OSI Approved")
NOTES = (("GPL", "copyleft"), ("MPL|Mozilla", "copyleft by file"), ("Proprietary", "proprietary"))
TEXT = """# Licences

`make licences` writes this page: what pip resolves for all extras on Python {python}, and the
licence that each package states in the version that was read. tfnlp itself is under Apache-2.0;
its wheel contains none of these packages.

## Packages that tfnlp asks for

{declared}

## Packages that these bring

{further}

## Packages of the page for browsers

npm fetches them for `export_tflite --web` and `make web`. The page holds code of
`@huggingface/tokenizers` and the two of LiteRT, and says so in its `LICENCES.txt`; the others
build it.

{web}
"""


def declared():
    """Return {name: (range, extras)} of the requirements in pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    lists = {"": project["dependencies"], **project["optional-dependencies"]}
    found = {}
    for extra, lines in lists.items():
        for requirement in map(Requirement, lines):
            if requirement.name != project["name"]:
                names = found.setdefault(requirement.name, (str(requirement.specifier), []))[1]
                names.append(extra)
    return {
        name: (versions.replace(",", ", "), "" if "" in extras else ", ".join(extras))
        for name, (versions, extras) in found.items()
    }


def licence_of(metadata):
    """Return the licence that a package's metadata, a dict, states."""
    if metadata.get("license_expression"):
        return metadata["license_expression"]
    names = [CLASSIFIER.fullmatch(line) for line in metadata.get("classifier", ())]
    names = [name[1] for name in names if name and name[1] not in NO_LICENCE]
    text = metadata.get("license", "").strip()
    is_name = text and "\n" not in text and len(text) <= LONGEST
    return text if is_name else ", ".join(names) or "not stated"


def note_of(licence):
    """Return a word on what a licence asks for beyond notices."""
    return next((note for pattern, note in NOTES if re.search(pattern, licence)), "")


def table(header, rows):
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def bringers_of(packages):
    """Return {name: who asks for it, by an extra if no package does always}."""
    always, by_extra = collections.defaultdict(dict), collections.defaultdict(dict)
    for package in packages:
        for requirement in map(Requirement, package.get("requires_dist", ())):
            is_extra = "extra ==" in str(requirement.marker)
            names = (by_extra if is_extra else always)[canonicalize_name(requirement.name)]
            names[package["name"]] = None
    return {p: list(always[p] or by_extra[p]) for p in [*always.keys() | by_extra.keys()]}


def web_table():
    """Return the table of the packages in npm's lock file; esbuild has one for each system."""
    packages = json.loads(LOCK.read_text("utf-8"))["packages"]
    packages = {path.removeprefix("node_modules/"): facts for path, facts in packages.items()}
    rows = [
        [name, facts["version"], facts["license"], note_of(facts["license"])]
        for name, facts in packages.items()
        if name and not name.startswith("@esbuild/")
    ]
    return table(["package", "version", "licence", "note"], rows)


def page(packages):
    """Return the text of the page.

    Args:
        packages: the metadata of each package, a list of dicts as in pip's report.
    """
    packages = {canonicalize_name(package["name"]): package for package in packages}
    wanted, bringers = declared(), bringers_of(packages.values())
    own = {"tfnlp", *map(canonicalize_name, wanted)}
    licences = {name: licence_of(package) for name, package in packages.items()}
    first = [
        [name, versions, extras, packages[canonicalize_name(name)]["version"], licence]
        + [note_of(licence)]
        for name, (versions, extras) in sorted(wanted.items(), key=lambda item: item[0].lower())
        for licence in [licences[canonicalize_name(name)]]
    ]
    second = [
        [package["name"], ", ".join(bringers.get(name, ())[:3]), licence, note_of(licence)]
        for name, package in sorted(packages.items())
        for licence in [licences[name]]
        if name not in own
    ]
    return TEXT.format(
        python=f"{sys.version_info.major}.{sys.version_info.minor}",
        declared=table(["package", "versions", "extra", "read", "licence", "note"], first),
        further=table(["package", "brought by", "licence", "note"], second),
        web=web_table(),
    )


def main():
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed"]
    packages = {}
    for extras in (EXTRAS, "log", "beam"):  # the pins of MLflow and Beam are of older packages
        command = [*pip, "--report=-", f".[{extras}]"]
        report = subprocess.run(command, check=True, stdout=subprocess.PIPE, cwd=ROOT).stdout
        metadata = [package["metadata"] for package in json.loads(report)["install"]]
        packages = {package["name"]: package for package in metadata} | packages
    PAGE.write_text(page(list(packages.values())), encoding="utf-8")


if __name__ == "__main__":
    main()
