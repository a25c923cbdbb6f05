"""What the library says names arguments; recipes make flags of them."""

import pathlib
import re

from recipes.shell.entry_point import with_flags

ROOT = pathlib.Path(__file__).parents[1]


def test_the_library_does_not_speak_of_flags():
    files = [p for folder in ("tfnlp", "distill") for p in (ROOT / folder).rglob("*.py")]
    assert len(files) > 90
    found = {
        f"{path.relative_to(ROOT)}: {flag}"
        for path in files
        for flag in re.findall(r"--[a-z{]\w*", path.read_text(encoding="utf-8"))
    }
    assert not found


def test_no_text_installs_the_package_that_has_this_name_on_pypi():
    """It is another one. pyproject.toml may name itself, which pip does not look up."""
    folders = [
        ROOT / name for name in ("tfnlp", "distill", "recipes", "benchmarks", "docs", "tests")
    ]
    files = [p for folder in folders for p in folder.rglob("*") if p.suffix in (".py", ".md")]
    files += [*ROOT.glob("*.md"), *ROOT.glob("runtime/*.txt"), ROOT / "Makefile"]
    named = re.compile(r"\btfnlp\[[a-z]|pip install [^`\n]*\btfnlp\b")
    named_in = {
        f"{path.relative_to(ROOT)}: {text}"
        for path in files
        for text in named.findall(path.read_text(encoding="utf-8"))
    }
    assert len(files) > 400 and not named_in


def test_recipes_turn_arguments_into_their_flags():
    names = {"max_length", "seed", "stride"}
    for said, shown in (
        ("max_length=5 leaves no room", "--max_length=5 leaves no room"),
        ("cut (stride=5, max_length=9).", "cut (--stride=5, --max_length=9)."),
        ("there `seed` is 0, `transformers` no", "there --seed is 0, `transformers` no"),
        ("--seed=1, hidden_dim=5 and max_length alone", None),
        ("runs/seed=1/train.tsv, line 3: 'seed=1'", None),
    ):
        assert with_flags(said, names) == (shown or said)
