"""Wheel and source distribution: which files they hold."""

import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile

import pytest

ROOT = pathlib.Path(__file__).parents[2]
PACKAGES = ("distill", "recipes", "tfnlp")
PAGES = ("CHANGELOG.md", "CITATION.cff", "LICENSE", "README.md", "SECURITY.md")
BUILD_FILES = ("MANIFEST.in", "pyproject.toml")
# Folders of Python, npm and `make web`.
BUILT = ("__pycache__", "node_modules", "dist")
# Each in a process of its own, as setuptools asks of who builds.
WHEEL, SDIST = (
    f"import sys, setuptools.build_meta as build; build.build_{kind}(sys.argv[1])"
    for kind in ("wheel", "sdist")
)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A function: the contents by name of the wheel, the sdist and the sdist's wheel."""
    folder = tmp_path_factory.mktemp("built")
    source = folder / "source"
    unwanted = shutil.ignore_patterns(*BUILT, "*.egg-info")
    for name in (*PACKAGES, "benchmarks", "tests"):
        # Of tests and benchmarks the top level is enough to see whether it is taken.
        hidden = unwanted if name in PACKAGES else lambda path, _: subfolders(path)
        shutil.copytree(ROOT / name, source / name, ignore=hidden)
    for name in (*PAGES, *BUILD_FILES):
        shutil.copy(ROOT / name, source)

    def build(code, source, name):
        command = [sys.executable, "-c", code, str(folder / name)]
        subprocess.run(command, check=True, capture_output=True, cwd=source)
        return next((folder / name).iterdir())

    with tarfile.open(build(SDIST, source, "sdist")) as archive:
        archive.extractall(folder / "unpacked", filter="data")
    sdist = next((folder / "unpacked").iterdir())
    files = {
        path.relative_to(sdist).as_posix(): path.read_bytes()
        for path in sdist.rglob("*")
        if path.is_file()
    }
    wheel = contents(build(WHEEL, source, "wheel"))
    return wheel, files, contents(build(WHEEL, sdist, "wheel_of_sdist"))


def subfolders(path):
    return [entry.name for entry in pathlib.Path(path).iterdir() if entry.is_dir()]


def contents(wheel):
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_all_pages_name_the_same_version():
    version, *others = (
        re.search(pattern, (ROOT / name).read_text("utf-8"), re.M)[1]
        for name, pattern in (
            ("pyproject.toml", r'^version = "([\d.]+)"$'),
            ("CITATION.cff", r"^version: ([\d.]+)$"),
            ("CHANGELOG.md", r"^## ([\d.]+)"),
        )
    )
    assert others == [version] * 2


def package_files():
    """The contents by name of all files of the packages."""
    files = [path for name in PACKAGES for path in (ROOT / name).rglob("*") if path.is_file()]
    files = [path for path in files if not set(BUILT) & set(path.parts)]
    return {path.relative_to(ROOT).as_posix(): path.read_bytes() for path in files}


def test_the_wheel_has_every_file_of_the_packages_and_no_other(built):
    wheel, _, _ = built
    files = {name: data for name, data in wheel.items() if ".dist-info/" not in name}
    assert files == package_files()
    assert {pathlib.PurePath(name).suffix for name in files} == {
        *(".py", ".pyi", ".txt"),
        *(".html", ".css", ".js", ".ts", ".json", ""),
    }
    information = {name.partition(".dist-info/")[2] for name in wheel.keys() - files.keys()}
    wanted = {"METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE"}
    assert information == wanted | {"top_level.txt"}
    top = next(data for name, data in wheel.items() if name.endswith("top_level.txt"))
    assert tuple(top.decode().split()) == PACKAGES


def test_the_sdist_has_the_packages_and_pages(built):
    _, sdist, _ = built
    files = {name: data for name, data in sdist.items() if ".egg-info/" not in name}
    pages = {name: (ROOT / name).read_bytes() for name in (*PAGES, *BUILD_FILES)}
    assert files.keys() == package_files().keys() | pages.keys() | {"PKG-INFO", "setup.cfg"}
    assert {name: files[name] for name in pages} == pages


def test_the_sdist_builds_the_same_wheel(built):
    wheel, _, again = built
    # RECORD has a hash of each of the others.
    assert again == wheel and len(wheel) > 300
