"""Links, modules and file names in the pages exist, and floors import as ARCHITECTURE.md says."""

import ast
import importlib.util
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parents[1]
PAGES = sorted(path.relative_to(ROOT) for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
PACKAGES = ("benchmarks", "distill", "recipes", "tests", "tfnlp")


def without_code(text):
    return re.sub(r"^ {4}[^\n]*$", "", re.sub(r"```.*?```", "", text, flags=re.S), flags=re.M)


def anchors(path):
    """Return the anchors of a page's headings, spelled as GitHub spells them."""
    headings = re.findall(r"^#+ (.*)$", without_code(path.read_text("utf-8")), re.M)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in headings}


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_links_lead_somewhere(page):
    for link in re.findall(r"\]\(([^)\s]+)\)", without_code((ROOT / page).read_text("utf-8"))):
        if "://" not in link:
            name, _, anchor = link.partition("#")
            path = (ROOT / page).parent / name if name else ROOT / page
            assert path.exists(), link
            assert not anchor or anchor in anchors(path), link


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_commands_and_files_exist(page):
    text = (ROOT / page).read_text("utf-8")
    for module in re.findall(rf"python -m ((?:{'|'.join(PACKAGES)})[\w.]*)", text):
        assert importlib.util.find_spec(module), module
    for name in re.findall(rf"`((?:{'|'.join((*PACKAGES, 'docs'))})/[\w/.]*)`", text):
        assert (ROOT / name).exists(), name
    files = {path.name for top in PACKAGES for path in (ROOT / top).rglob("*.py")}
    assert set(re.findall(r"`(\w+\.py)`", text)) <= files


def test_pages_named_in_code_exist():
    files = [path for top in PACKAGES for path in (ROOT / top).rglob("*.py")]
    for path in files:
        for page in re.findall(r"docs/[\w/]+\.md", path.read_text("utf-8")):
            assert (ROOT / page).exists(), f"{path}: {page}"


def imported_modules(path):
    """Yield the full name of each import of a file, those within functions too."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_floors_import_from_floors_below():
    table = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    floors = re.findall(r"^\| `([\w/.]+)` \|", table, re.M)
    prefixes = [f"{floor.removesuffix('.py').replace('/', '.')}." for floor in floors]
    packages = [*ROOT.glob("tfnlp/*/__init__.py"), *ROOT.glob("distill/*/__init__.py")]
    assert {str(path.parent.relative_to(ROOT)) for path in packages} <= set(floors)
    upward = set()
    for height, floor in enumerate(floors):
        files = [ROOT / floor] if floor.endswith(".py") else (ROOT / floor).rglob("*.py")
        for module in {f"{name}." for path in files for name in imported_modules(path)}:
            upward |= {(floor, floors[i]) for i in range(height) if module.startswith(prefixes[i])}
    assert not upward
