"""Sweep files: variants of recipes, read and checked before anything runs."""

import dataclasses
import json
import pathlib
import re
import subprocess
import sys
import typing

import yaml

from tfnlp.text.lines import check_file
from tfnlp.utils.errors import InputError, spelt_alike
from tfnlp.utils.hub import is_hub_name

KEYS = ("recipe", "flags", "steps", "variants", "seeds", "base", "metrics")
STEP_KEYS = ("recipe", "flags", "name")
# Flags that the sweep sets for each run.
OWN = ("output_dir", "overwrite")
# Flags that name files; flags of folders end in _dir.
FILES = ("train", "dev", "test", "input", "model", "vocabulary_text", "vectors")
# YAML tags that are not read as strings.
_KEPT_TAGS = ("null", "merge")
# A name that is a valid folder name on any system.
_NAME = re.compile(r"[\w+=-][\w.+=-]*")


@dataclasses.dataclass(frozen=True)
class Step:
    """One recipe call of a run, with its flags as strings.

    In a flag's value {run} stands for the run's folder, {sweep} for the sweep's folder, {variant}
    for the variant's name and {seed} for the run's seed.
    """

    name: str
    recipe: str
    flags: dict


@dataclasses.dataclass(frozen=True)
class Run:
    """Run of a variant with one seed.

    Args:
        variant: the variant's name.
        seed: an integer.
        folder: the folder that its steps write to, a `pathlib.Path`.
        steps: a list of `Step`, with all placeholders filled in.
    """

    variant: str
    seed: int
    folder: pathlib.Path
    steps: list

    @property
    def name(self):
        return f"{self.variant}, seed {self.seed}"


@dataclasses.dataclass(frozen=True)
class Sweep:
    """Content of a sweep file.

    Args:
        path: path of the file.
        variants: {name: list of `Step`}.
        seeds: a list of integers.
        base: the variant that the others are compared with.
        metrics: the names of the metrics to show, or None.
    """

    path: pathlib.Path
    variants: dict
    seeds: list
    base: str
    metrics: list | None = None

    def runs(self, folder):
        """Return the runs in order: all variants with the first seed, then with the next one.

        Args:
            folder: the sweep's folder.
        """
        folder = pathlib.Path(folder)
        return [
            self._run(name, steps, seed, folder)
            for seed in self.seeds
            for name, steps in self.variants.items()
        ]

    def _run(self, name, steps, seed, folder):
        run_folder = folder / name / f"seed_{seed}"
        places = {"run": run_folder, "sweep": folder, "variant": name, "seed": seed}

        def whole(step):
            flags = {key: _filled(value, places) for key, value in step.flags.items()}
            return dataclasses.replace(
                step, flags=flags | {"output_dir": str(run_folder / step.name)}
            )

        return Run(name, seed, run_folder, [whole(step) for step in steps])


def read_sweep(path):
    """Read the `Sweep` of a YAML or JSON file, without checking its flags.

    Raises:
        InputError: if the file is missing or malformed, or has no table of variants.
    """
    path = pathlib.Path(path)
    content = _read(path)
    _check_keys(f"{path}", content, KEYS)
    table = content.get("variants")
    if not isinstance(table, dict) or not table:
        raise InputError(
            f"{path} has no table of `variants`; give each a name, and under it its flags."
        )
    common = _common_steps(path, content)
    variants = {}
    for name, value in table.items():
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise InputError(
                f"{path}: the variant {name!r} names a folder; use letters, digits, _, -, +, = "
                "and . alone."
            )
        variants[name] = _variant(f"{path}, variant {name!r}", value, common)
    base = content.get("base") or next(iter(variants))
    if base not in variants:
        raise InputError(f"{path}: base={base!r} is none of the variants ({', '.join(variants)}).")
    metrics = content.get("metrics")
    if isinstance(metrics, str):
        metrics = [name.strip() for name in metrics.split(",") if name.strip()]
    return Sweep(path, variants, _seeds(path, content.get("seeds", ["0"])), base, metrics or None)


def check_sweep(sweep, with_files=True):
    """Check all flags of a sweep against its recipes, and add the seed to each step's flags.

    Args:
        sweep: the result of `read_sweep`.
        with_files: whether the files that flags name must exist.

    Returns:
        The `Sweep` with `seed={seed}` in each step whose recipe has a seed.

    Raises:
        InputError: if a recipe does not know a flag, rejects its value, or a flag names a
            missing file (the message names sweep file and variant); or if there are several
            seeds, but a variant's runs do not depend on them.
    """
    by_recipe = {}
    for name, steps in sweep.variants.items():
        for step in steps:
            by_recipe.setdefault(step.recipe, []).append((name, step))
    with_seed = set()
    for recipe, uses in by_recipe.items():
        # Placeholders are filled with an arbitrary folder and seed for the check.
        places = {"run": "run", "sweep": "sweep", "seed": sweep.seeds[0]}
        lines = [
            {k: _filled(v, places | {"variant": name}) for k, v in step.flags.items()}
            | {"output_dir": "run"}
            for name, step in uses
        ]
        knows, errors = _ask(recipe, lines)
        with_seed |= {recipe} if "seed" in knows else set()
        for (name, step), error in zip(uses, errors, strict=True):
            if error:
                raise InputError(f"{sweep.path}, variant {name!r}, {step.name}: {error}")
            for flag, value in step.flags.items() if with_files else ():
                _check_place(f"{sweep.path}, variant {name!r}, {step.name}", flag, value)

    def seeded(step):
        seed = {"seed": "{seed}"} if step.recipe in with_seed else {}
        return dataclasses.replace(step, flags=seed | step.flags)

    variants = {name: [seeded(s) for s in steps] for name, steps in sweep.variants.items()}
    for name, steps in variants.items():
        if len(sweep.seeds) > 1 and not any(map(_takes_seed, steps)):
            fixed = any("seed" in step.flags for step in steps)
            why = "its flags fix one" if fixed else "none of its recipes has a seed"
            mend = "leave `seed` out of them" if fixed else "leave `seeds` out"
            raise InputError(
                f"{sweep.path}, variant {name!r}: the file has {len(sweep.seeds)} seeds, but "
                f"{why}, so that all runs would be the same; {mend}."
            )
    return dataclasses.replace(sweep, variants=variants)


def recipes():
    """Return the names of the recipes that a sweep can run."""
    folder = pathlib.Path(__file__).parent
    names = (p.stem for p in folder.glob("*.py") if "\ndef main():\n" in p.read_text("utf-8"))
    return sorted({*names} - {"demo", "sweep"})


def _takes_seed(step):
    # The cache's folder does not affect the result.
    return any("{seed}" in value for name, value in step.flags.items() if name != "cache_dir")


def _filled(text, places):
    # Not `str.format`, which would fail on other braces.
    for name, place in places.items():
        text = text.replace(f"{{{name}}}", str(place))
    return text


def _common_steps(path, content):
    """Return the steps shared by variants without steps of their own, or None."""
    if "steps" in content:
        if "recipe" in content or "flags" in content:
            raise InputError(
                f"{path} has `steps`, which name their own recipes and flags; leave `recipe` and "
                "`flags` out beside them."
            )
        return _steps(f"{path}", content["steps"])
    if "recipe" not in content:
        if "flags" in content:
            raise InputError(f"{path} has `flags`, but no `recipe` that takes them.")
        return None
    step = {key: content[key] for key in ("recipe", "flags") if key in content}
    return _steps(f"{path}", [step])


def _variant(place, content, common):
    """Return a variant's steps: its own, or the common ones with its flags."""
    content = {} if content is None else content
    if not isinstance(content, dict):
        raise InputError(f"{place} must be a mapping of flags, not {content!r}.")
    if "steps" in content:
        if len(content) > 1:
            other = next(key for key in content if key != "steps")
            raise InputError(f"{place} has `steps` of its own; give {other!r} within them.")
        return _steps(place, content["steps"])
    if common is None:
        raise InputError(f"{place} has no `steps`, and the file no `recipe`; give one of them.")
    steps = {step.name: step for step in common}
    first = common[0].name
    changes = {name: {} for name in steps}
    for key, value in content.items():
        if not isinstance(value, dict):
            changes[first][key] = value
        elif key in steps:
            changes[key] |= value
        else:
            raise InputError(
                f"{place}: {key!r} has flags under it, but is no step ({', '.join(steps)})."
            )
    return [
        dataclasses.replace(step, flags=_flags(place, step.flags | changes[step.name]))
        for step in common
    ]


def _steps(place, content):
    if not isinstance(content, list) or not content:
        raise InputError(f"{place}: `steps` must be a list of recipes with their `flags`.")
    steps, known = [], recipes()
    for number, step in enumerate(content, 1):
        here = f"{place}, step {number}"
        if not isinstance(step, dict) or not isinstance(step.get("recipe"), str):
            raise InputError(f"{here} must be a mapping with a `recipe` and its `flags`.")
        _check_keys(here, step, STEP_KEYS)
        recipe, flags = step["recipe"], step.get("flags") or {}
        if recipe not in known:
            raise InputError(
                f"{here}: there is no recipe {recipe!r}{spelt_alike(recipe, known)}; known are "
                f"{', '.join(known)}."
            )
        if not isinstance(flags, dict):
            raise InputError(f"{here}: `flags` must be a mapping, not {flags!r}.")
        name = step.get("name") or recipe
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise InputError(f"{here}: name={name!r} names a folder; use letters, digits and _.")
        if name in [s.name for s in steps]:
            raise InputError(f"{here}: there is a step {name!r} already; give one another `name`.")
        steps.append(Step(name, recipe, _flags(here, flags)))
    return steps


def _flags(place, content):
    """Return the flags as strings, without empty ones, which keep their defaults."""
    flags = {}
    for name, value in content.items():
        if name in OWN:
            raise InputError(f"{place}: --{name} is the sweep's own; leave it out.")
        if isinstance(value, list) and all(isinstance(entry, str) for entry in value):
            value = ",".join(value)
        if not isinstance(value, str | None):
            raise InputError(f"{place}: --{name} must be one value, or a list of values.")
        if value:
            flags[name] = value
    return flags


def _seeds(path, content):
    content = content if isinstance(content, list) else [content]
    if not content or not all(isinstance(s, str) and s.isdecimal() for s in content):
        raise InputError(f"{path}: `seeds` must be a list of whole numbers, such as [0, 1, 2].")
    seeds = [int(seed) for seed in content]
    if len({*seeds}) < len(seeds):
        raise InputError(f"{path}: one of the `seeds` is there twice; give each once.")
    return seeds


def _check_keys(place, content, keys):
    for key in content:
        if key not in keys:
            raise InputError(
                f"{place}: there is no `{key}`{spelt_alike(key, keys)}; known are "
                f"{', '.join(keys)}."
            )


def _check_place(place, flag, value):
    """Raise an InputError for a missing file or folder; a value with a placeholder passes."""
    is_folder = flag.endswith("_dir") and flag != "cache_dir"
    if "{" in value or not (is_folder or flag in FILES):
        return
    for part in value.split(","):
        there = pathlib.Path(part).exists() or (is_folder and is_hub_name(part))
        if not there:
            kind = "folder" if is_folder else "file"
            raise InputError(f"{place}: --{flag}={part} is no {kind}; check the path.")


def _ask(recipe, lines):
    """Return the names of a recipe's flags, and an error or None for each command line."""
    # Flags are global, so each recipe's flags are defined in a separate process.
    done = subprocess.run(
        [sys.executable, "-m", "recipes.flag_check", recipe],
        input=json.dumps(lines),
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    answer = json.loads(done.stdout)
    return answer["flags"], answer["errors"]


def _read(path):
    """Read a YAML file (or JSON, which is YAML), with all scalars as the strings in it."""
    check_file(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
        content = yaml.load(text, _TextLoader)
    except UnicodeDecodeError as e:
        raise InputError(f"{path} is not UTF-8 text (byte {e.start}); save it as UTF-8.") from None
    except yaml.MarkedYAMLError as e:
        line = f", line {e.problem_mark.line + 1}" if e.problem_mark else ""
        raise InputError(f"{path}{line}: not valid YAML ({e.problem}).") from None
    except yaml.YAMLError as e:
        raise InputError(f"{path}: not valid YAML ({' '.join(str(e).split())}).") from None
    if not isinstance(content, dict):
        raise InputError(f"{path} must be a mapping with `recipe`, `flags` and `variants`.")
    return content


class _TextLoader(yaml.SafeLoader):
    """YAML loader that refuses a name given twice, and keeps all scalars but null as strings.

    YAML reads "no" and "on" as booleans, and PyYAML 1e-4 as a string but 0.0001 as a number.
    """

    yaml_implicit_resolvers: typing.ClassVar = {
        character: [(tag, pattern) for tag, pattern in resolvers if tag.endswith(_KEPT_TAGS)]
        for character, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def compose_mapping_node(self, anchor):
        node, names = super().compose_mapping_node(anchor), set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value in names:
                problem = f"{key.value!r} is there twice; give each name once"
                raise yaml.composer.ComposerError(None, None, problem, key.start_mark)
            names.add(str(key.value))
        return node
