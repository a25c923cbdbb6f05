"""Links, modules, flags and file names in the pages exist, the API pages have every public name,
and floors import as ARCHITECTURE.md says.
"""

import ast
import importlib
import importlib.util
import json
import pathlib
import re
import subprocess
import sys
import tomllib

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


def test_no_page_has_the_name_of_one_that_sphinx_writes():
    """Such a page is lost in the site, and links to it lead to the search."""
    assert not {"search", "genindex"} & {path.stem for path in (ROOT / "docs").glob("*.md")}


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_commands_and_files_exist(page):
    text = (ROOT / page).read_text("utf-8")
    for module in re.findall(rf"python -m ((?:{'|'.join(PACKAGES)})[\w.]*)", text):
        assert importlib.util.find_spec(module), module
    for name in re.findall(rf"`((?:{'|'.join((*PACKAGES, 'docs'))})/[\w/.]*)`", text):
        assert (ROOT / name).exists(), name
    files = {path.name for top in PACKAGES for path in (ROOT / top).rglob("*.py")}
    assert set(re.findall(r"`(\w+\.py)`", text)) <= files


def test_python_blocks_import_names_that_exist():
    imports = set()
    for page in PAGES:
        text = (ROOT / page).read_text("utf-8")
        for block in re.findall(r"^```python\n(.*?)^```", text, re.M | re.S):
            nodes = [n for n in ast.walk(ast.parse(block)) if isinstance(n, ast.ImportFrom)]
            imports |= {(n.module, alias.name, page) for n in nodes for alias in n.names}
    for module, name, page in sorted(imports):
        if module.split(".")[0] in PACKAGES:
            found = hasattr(importlib.import_module(module), name)
            assert found or importlib.util.find_spec(f"{module}.{name}"), (
                f"{page}: {module}.{name}"
            )


@pytest.mark.parametrize("page", [*ROOT.glob("docs/ko/*.md")], ids=lambda path: path.name)
def test_a_korean_tutorial_has_the_snippets_of_the_english_one(page):
    """Those run when the site is made; the translation is not run a second time."""
    english = ROOT / "docs/tutorials" / page.name
    blocks = [
        re.findall(r"^```.*?^```", p.read_text("utf-8"), re.M | re.S) for p in (page, english)
    ]
    assert blocks[0] == blocks[1] != []


@pytest.mark.parametrize("page", [*ROOT.glob("docs/papers/*.md")], ids=lambda path: path.stem)
def test_a_paper_shows_code_that_exists(page):
    text = page.read_text("utf-8")
    shown = re.findall(r"^```\{literalinclude\} (\S+)\n:pyobject: (\S+)$", text, re.M)
    for path, name in shown:
        names = set()
        for node in ast.parse((page.parent / path).read_text("utf-8")).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                names |= {node.name} | {
                    f"{node.name}.{part.name}"
                    for part in ast.walk(node)
                    if isinstance(part, ast.FunctionDef)
                }
        assert name in names, f"{path}: {name}"
    assert (shown and "tests/" in text) or page.stem == "README"
    assert page.stem == "README" or f"({page.name})" in (page.parent / "README.md").read_text()


def test_flags_of_commands_exist():
    """Each recipe is imported in a fork, as absl's flags are of a process."""
    code = (
        "import json, os, sys\n"
        "from recipes.shell.tfnlp_command import flag_words\n"
        "for name in sys.argv[1:]:\n"
        "    if not os.fork():\n"
        "        print(json.dumps([name, flag_words(name)]), flush=True)\n"
        "        os._exit(0)\n"
        "    os.wait()\n"
    )
    recipes = [path.stem for path in (ROOT / "recipes").glob("*.py")]
    commands = []
    for page in PAGES:
        text = (ROOT / page).read_text("utf-8").replace("\\\n", " ")
        text = re.sub(r"=(['\"]).*?\1", "=", text, flags=re.S)  # a value may have other flags
        commands += re.findall(r"(?:python -m recipes\.|`tfnlp )([a-z]\w+)([^`|\n]*)", text)
        if page.name != "CHANGELOG.md":  # it names flags that have gone
            commands += re.findall(rf"`({'|'.join(recipes)})( --[^`|\n]*)`", text)
        if page.name == "can_it.md":
            commands += [("finetune_classifier", f) for f in re.findall(r"`(--[^`|\n]*)`", text)]
    names = sorted({name for name, _ in commands})
    done = subprocess.run(
        [sys.executable, "-c", code, *names], check=True, capture_output=True, text=True, cwd=ROOT
    )
    known = dict(map(json.loads, done.stdout.splitlines()))
    assert set(known) == set(names)
    for name, arguments in commands:
        for flag, value in re.findall(r"--(\w+)(=?)", arguments):
            forms = {f"--{flag}{value}", f"--{flag.removeprefix('no')}"}
            assert flag == "help" or forms & set(known[name]), f"{name}: --{flag}"


def test_extras_on_the_pages_are_those_of_the_project():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = {
        name: {re.match(r"[\w-]+", requirement)[0].lower() for requirement in requirements}
        for name, requirements in project["optional-dependencies"].items()
    }
    page = (ROOT / "docs/install.md").read_text("utf-8")
    rows = re.findall(r"^\| `(\w+)` \| ([\w, -]+) \|", page, re.M)
    developers = re.search(r"^\| (`test`.*?) \|", page, re.M)[1].replace("`", "").split(", ")
    assert {name: set(packages.split(", ")) for name, packages in rows} == {
        name: packages for name, packages in extras.items() if name not in developers
    }
    for page in PAGES:
        for names in re.findall(r"\.\[([\w,]+)\]\"", (ROOT / page).read_text("utf-8")):
            assert set(names.split(",")) <= set(extras), page


def test_api_pages_have_every_public_name():
    """A page has all names of its package, so that a package on the list has all of its own."""
    listed = set(re.findall(r"^   ([a-z_.]+)$", (ROOT / "docs/api.md").read_text("utf-8"), re.M))
    public = {"tfnlp.layers"}
    for stub in [*ROOT.glob("tfnlp/**/__init__.pyi"), *ROOT.glob("distill/**/__init__.pyi")]:
        package = ".".join(stub.parent.relative_to(ROOT).parts)
        modules = re.findall(r"^from \. import (\w+)", stub.read_text("utf-8"), re.M)
        public |= {f"{package}.{module}" for module in modules}
        public |= {package} if "." in package else set()
    assert public - listed == set()


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
