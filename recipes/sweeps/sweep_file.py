"""Sweep files: variants of recipes, read and checked before anything runs."""

import dataclasses
import json
import pathlib
import re
import subprocess
import sys
import typing

import yaml

from recipes.shell.input_checks import FILES
from tfnlp.text.reading.lines import check_file
from tfnlp.utils.errors import InputError, unknown_name
from tfnlp.utils.hub import is_remote

KEYS = ("steps", "variants", "seeds", "folds", "base", "metrics")
STEP_KEYS = ("recipe", "flags", "name")
# Recipes of a classifier, whose dev set may be a fold.
WITH_FOLDS = ("finetune_classifier", "distill_classifier")
# Flags that the sweep sets for each run.
SWEEP_FLAGS = ("output_dir", "overwrite")
# YAML tags that are not read as strings.
_KEPT_TAGS = ("null", "merge")


@dataclasses.dataclass(frozen=True)
class Step:
    """One recipe call of a run, with its flags as strings.

    In a flag's value {run} stands for the run's folder, {sweep} for the sweep's folder, {variant}
    for the variant's name, {seed} for the run's seed and {fold} for its fold, such as 2/5.
    """

    name: str
    recipe: str
    flags: dict

    def with_flags(self, changes):
        """Return the step with other values of some flags; an empty one is left at its default."""
        flags = {name: value for name, value in (self.flags | changes).items() if value}
        return dataclasses.replace(self, flags=flags)

    def filled(self, places):
        """Return {flag: value} with {placeholder: value} filled in."""

        def fill(text):  # not `str.format`, which would fail on other braces
            for name, place in places.items():
                text = text.replace(f"{{{name}}}", str(place))
            return text

        return {name: fill(value) for name, value in self.flags.items()}


@dataclasses.dataclass(frozen=True)
class Run:
    """Run of a variant with one seed, or on one fold.

    Args:
        variant: the variant's name.
        unit: "seed" or "fold".
        number: the seed, or the fold from 1 on.
        folder: the folder that its steps write to, a `pathlib.Path`.
        steps: a list of `Step`, with all placeholders filled in.
    """

    variant: str
    unit: str
    number: int
    folder: pathlib.Path
    steps: list

    @property
    def name(self):
        return f"{self.variant}, {self.unit} {self.number}"


@dataclasses.dataclass(frozen=True)
class Sweep:
    """Content of a sweep file.

    Args:
        path: path of the file.
        variants: {name: list of `Step`}.
        seeds: a list of integers; one if there are folds.
        folds: the number of folds of the training file to evaluate on, one a run; None for none.
        base: the variant that the others are compared with.
        metrics: the names of the metrics to show; empty for a selection.
    """

    path: pathlib.Path
    variants: dict
    seeds: list
    base: str
    metrics: list
    folds: int | None = None

    @property
    def unit(self):
        """The number that tells a variant's runs apart, "seed" or "fold"."""
        return "fold" if self.folds else "seed"

    def runs(self, folder):
        """Return the runs below a folder: all variants with the first seed, then the next one."""
        folder, runs = pathlib.Path(folder), []
        for number in range(1, self.folds + 1) if self.folds else self.seeds:
            seed = self.seeds[0] if self.folds else number
            for name, steps in self.variants.items():
                place = folder / name / f"{self.unit}_{number}"
                places = {"run": place, "sweep": folder, "variant": name, "seed": seed}
                places["fold"] = f"{number}/{self.folds}"
                whole = [
                    dataclasses.replace(
                        step, flags=step.filled(places) | {"output_dir": str(place / step.name)}
                    )
                    for step in steps
                ]
                runs.append(Run(name, self.unit, number, place, whole))
        return runs

    def place(self, variant, step):
        """Return the place of a variant's step in messages."""
        return f"{self.path}, variant {variant!r}, {step.name}"


def read_sweep(path):
    """Read the `Sweep` of a YAML or JSON file, without checking its flags.

    Raises:
        InputError: if the file is missing or malformed, or has no table of variants.
    """
    path = pathlib.Path(path)
    content = _mapping(f"{path}", _read_yaml(path))
    _mapping(f"{path}", content, KEYS if "steps" in content else ("recipe", "flags", *KEYS))
    common = _steps(f"{path}", content)
    variants = {}
    for name, value in _mapping(f"{path}: `variants`", content.get("variants") or "").items():
        place = f"{path}, variant {name!r}"
        _check_folder_name(place, name)
        value = _mapping(place, value)
        if "steps" in value:
            variants[name] = _steps(place, _mapping(place, value, ("steps",)))
        else:
            variants[name] = _changed_steps(place, common, value)
    base = content.get("base") or next(iter(variants))
    if base not in variants:
        raise unknown_name(f"{path}: base", base, variants)
    seeds = _as_list(content.get("seeds", "0"))
    if not all(map(str.isdecimal, seeds)) or not len({*map(int, seeds)}) == len(seeds) > 0:
        raise InputError(f"{path}: `seeds` must be different whole numbers, such as [0, 1, 2].")
    metrics = _as_list(content.get("metrics") or [])
    folds = _folds(path, content, seeds)
    return Sweep(path, variants, [*map(int, seeds)], base, metrics, folds=folds)


def _folds(path, content, seeds):
    """Return the number of folds of a sweep's content, or None."""
    folds = content.get("folds")
    if folds is None:
        return None
    if not str(folds).isdecimal() or int(folds) < 2:
        raise InputError(f"{path}: folds={folds} must be a whole number, 2 or more.")
    if len(seeds) > 1:
        raise InputError(f"{path}: `folds` takes one seed, and `seeds` has {len(seeds)}.")
    return int(folds)


def check_sweep(sweep, with_files=True):
    """Check all flags of a sweep against its recipes, and add seed and fold to those of steps.

    Args:
        sweep: the result of `read_sweep`.
        with_files: whether the files that flags name must exist.

    Returns:
        The `Sweep` with `seed={seed}` in each step whose recipe has a seed, and with `fold={fold}`
        if there are folds, and its recipe reads one.

    Raises:
        InputError: if a recipe does not know a flag, rejects its value, or a flag names a
            missing file (the message names sweep file and variant); or if there are several
            seeds, or folds, but a variant's runs do not depend on them.
    """
    sweep = dataclasses.replace(sweep, variants=_with_folds(sweep))
    with_seed = _check_flags(sweep)
    if with_files:
        for variant, steps in sweep.variants.items():
            for step in steps:
                _check_places(sweep.place(variant, step), step.flags)
    variants = {
        name: [
            step.with_flags({"seed": "{seed}"} | step.flags if step.recipe in with_seed else {})
            for step in steps
        ]
        for name, steps in sweep.variants.items()
    }
    for name, steps in variants.items():
        # The cache's folder does not affect the result.
        values = [v for step in steps for flag, v in step.flags.items() if flag != "cache_dir"]
        if len(sweep.seeds) > 1 and not any("{seed}" in value for value in values):
            raise InputError(
                f"{sweep.path}, variant {name!r}: the file has {len(sweep.seeds)} seeds, but no "
                "step reads one, so that all runs would be the same; leave `seeds` out, or a "
                "`seed` out of the flags."
            )
    return dataclasses.replace(sweep, variants=variants)


def _with_folds(sweep):
    """Return the variants with the fold in the steps whose recipe reads one."""
    recipes_of_folds = WITH_FOLDS if sweep.folds else ()
    variants = {
        name: [
            step.with_flags({"fold": "{fold}"} if step.recipe in recipes_of_folds else {})
            for step in steps
        ]
        for name, steps in sweep.variants.items()
    }
    for name, steps in variants.items():
        reads = any("{fold}" in value for step in steps for value in step.flags.values())
        if reads and not sweep.folds:
            raise InputError(
                f"{sweep.path}, variant {name!r}: {{fold}} needs `folds`, such as folds: 5."
            )
        if sweep.folds and not reads:
            raise InputError(
                f"{sweep.path}, variant {name!r}: no step reads a fold, which "
                f"{' and '.join(WITH_FOLDS)} do; leave `folds` out."
            )
    return variants


def recipes():
    """Return the names of the recipes that a sweep can run."""
    names = {path.stem for path in pathlib.Path(__file__).parents[1].glob("*.py")}
    return sorted(names - {"__init__", "demo", "sweep"})


def _mapping(place, content, keys=None):
    """Return a mapping, empty for None; raise an InputError for other content or unknown keys."""
    content = {} if content is None else content
    if not isinstance(content, dict):
        raise InputError(f"{place} must be a mapping, not {content!r}.")
    for key in content if keys else ():
        if key not in keys:
            raise unknown_name(f"{place}: key", key, keys)
    return content


def _check_folder_name(place, name):
    if not isinstance(name, str) or not re.fullmatch(r"[\w+=-][\w.+=-]*", name):
        raise InputError(
            f"{place}: {name!r} names a folder; use letters, digits, _, -, +, = and . alone."
        )


def _as_list(content):
    """Return a list of words, from a list or a text with commas."""
    words = content.split(",") if isinstance(content, str) else content
    return [str(word).strip() for word in words if word]


def _steps(place, content):
    """Return the steps of a mapping with `steps`, or with one step's `recipe` and `flags`."""
    one = {key: content[key] for key in ("recipe", "flags") if key in content}
    steps, known = {}, recipes()
    for number, step in enumerate(content.get("steps") or [one] * bool(one), 1):
        here = f"{place}, step {number}" if "steps" in content else place
        step = _mapping(here, step, STEP_KEYS)
        recipe = step.get("recipe")
        if recipe not in known:
            raise unknown_name(f"{here}: recipe", recipe, known)
        name = step.get("name") or recipe
        _check_folder_name(here, name)
        if name in steps:
            raise InputError(f"{here}: there is a step {name!r} already; give one another `name`.")
        flags = _mapping(f"{here}: `flags`", step.get("flags"))
        steps[name] = Step(name, recipe, {}).with_flags(_flags(here, flags))
    return list(steps.values())


def _changed_steps(place, common, content):
    """Return the common steps with a variant's flags: of the first step, or by a step's name."""
    if not common:
        raise InputError(f"{place} has no `steps`, and the file no `recipe`; give one of them.")
    names = [step.name for step in common]
    changes = {name: {} for name in names}
    for key, value in content.items():
        if not isinstance(value, dict):
            changes[names[0]][key] = value
        elif key in names:
            changes[key] |= value
        else:
            raise unknown_name(f"{place}: step", key, names)
    return [step.with_flags(_flags(place, changes[step.name])) for step in common]


def _flags(place, content):
    """Return flags as strings; empty for those that keep their defaults."""
    flags = {}
    for name, value in content.items():
        if name in SWEEP_FLAGS:
            raise InputError(f"{place}: --{name} is the sweep's own; leave it out.")
        if isinstance(value, dict):
            raise InputError(f"{place}: --{name} must be one value, or a list of values.")
        flags[name] = ",".join(map(str, value)) if isinstance(value, list) else value or ""
    return flags


def _check_flags(sweep):
    """Check flags by their recipes; return the names of the recipes that have a seed.

    Flags are global, so each recipe's flags are defined in a separate process. An arbitrary
    folder and seed stand for the placeholders.
    """
    places, uses, with_seed = {"run": "run", "sweep": "sweep", "seed": sweep.seeds[0]}, {}, set()
    places["fold"] = f"1/{sweep.folds}"
    for variant, steps in sweep.variants.items():
        for step in steps:
            flags = step.filled(places | {"variant": variant}) | {"output_dir": "run"}
            uses.setdefault(step.recipe, {})[sweep.place(variant, step)] = flags
    for recipe, flags_by_place in uses.items():
        command = [sys.executable, "-m", "recipes.flags.flag_check", recipe]
        lines = json.dumps([*flags_by_place.values()])
        answer = json.loads(subprocess.check_output(command, input=lines, text=True))
        for place, error in zip(flags_by_place, answer["errors"], strict=True):
            if error:
                raise InputError(f"{place}: {error}")
        with_seed |= {recipe} if "seed" in answer["flags"] else set()
    return with_seed


def _check_places(place, flags):
    """Raise an InputError for a missing file or folder; a value with a placeholder passes."""
    for flag, value in flags.items():
        is_folder = flag.endswith("_dir") and flag != "cache_dir"
        if "{" in value or not (is_folder or flag in (*FILES, "model", "vectors")):
            continue
        for part in value.split(","):
            if not (pathlib.Path(part).exists() or (is_folder and is_remote(part))):
                kind = "folder" if is_folder else "file"
                raise InputError(f"{place}: --{flag}={part} is no {kind}; check the path.")


def _read_yaml(path):
    """Read a YAML file (or JSON, which is YAML), with all scalars as the strings in it."""
    check_file(path)
    try:
        return yaml.load(path.read_bytes(), _TextLoader)
    except yaml.YAMLError as e:
        mark = getattr(e, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        problem = getattr(e, "problem", None) or " ".join(str(e).split())
        raise InputError(f"{path}{line}: not valid YAML ({problem}).") from None


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
