"""A sweep's file: variants of recipes, read and checked before anything runs."""

import dataclasses
import json
import pathlib
import re
import subprocess
import sys

import yaml

from tfnlp.errors import InputError, spelt_alike
from tfnlp.hub import is_hub_name
from tfnlp.text.lines import check_file

KEYS = ("recipe", "flags", "steps", "variants", "seeds", "base", "metrics")
STEP_KEYS = ("recipe", "flags", "name")
# Flags that a sweep gives to each run itself.
OWN = ("output_dir", "overwrite")
# Flags of files, beside those of folders, whose names end in _dir.
FILES = ("train", "dev", "test", "input", "model", "vocabulary_text", "vectors")
# A name that is a folder's too, on any system.
_NAME = re.compile(r"[\w+=-][\w.+=-]*")


@dataclasses.dataclass(frozen=True)
class Step:
    """A recipe of a run, and its flags as texts.

    In a flag's text {run} stands for the run's folder, {sweep} for that of the whole sweep,
    {variant} for the variant's name and {seed} for the run's seed.
    """

    name: str
    recipe: str
    flags: dict


@dataclasses.dataclass(frozen=True)
class Run:
    """A variant with a seed.

    Args:
        variant: its name.
        seed: an integer.
        folder: where its steps write, a `pathlib.Path`.
        steps: a list of `Step`, with whole flags.
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
    """What a sweep's file says.

    Args:
        path: of the file.
        variants: {name: list of `Step`}.
        seeds: a list of integers.
        base: the variant that the others are compared with.
        metrics: the names of the figures to show, or None.
    """

    path: pathlib.Path
    variants: dict
    seeds: list
    base: str
    metrics: list | None = None

    def runs(self, folder):
        """The runs in their order, every variant with the first seed first.

        Args:
            folder: of the sweep.
        """
        folder = pathlib.Path(folder)
        return [
            self._run(name, steps, seed, folder)
            for seed in self.seeds
            for name, steps in self.variants.items()
        ]

    def _run(self, name, steps, seed, folder):
        own = folder / name / f"seed_{seed}"
        places = {"run": own, "sweep": folder, "variant": name, "seed": seed}

        def whole(step):
            found = {key: _filled(value, places) for key, value in step.flags.items()}
            return dataclasses.replace(step, flags=found | {"output_dir": str(own / step.name)})

        return Run(name, seed, own, [whole(step) for step in steps])


def read_sweep(path):
    """The `Sweep` of a YAML or JSON file; its flags are not checked yet.

    Raises:
        InputError: if the file is missing or broken, or is no table of variants.
    """
    path = pathlib.Path(path)
    content = _read(path)
    _check_keys(f"{path}", content, KEYS)
    variants = content.get("variants")
    if not isinstance(variants, dict) or not variants:
        raise InputError(
            f"{path} has no table of `variants`; give each a name, and under it its flags."
        )
    common = _common_steps(path, content)
    found = {}
    for name, given in variants.items():
        if not _NAME.fullmatch(name):
            raise InputError(
                f"{path}: the variant {name!r} names a folder; use letters, digits, _, -, +, = "
                "and . alone."
            )
        found[name] = _variant(f"{path}, variant {name!r}", given, common)
    base = content.get("base") or next(iter(found))
    if base not in found:
        raise InputError(f"{path}: base={base!r} is none of the variants ({', '.join(found)}).")
    metrics = content.get("metrics")
    if isinstance(metrics, str):
        metrics = [name.strip() for name in metrics.split(",") if name.strip()]
    return Sweep(path, found, _seeds(path, content.get("seeds", ["0"])), base, metrics or None)


def check_sweep(sweep, with_files=True):
    """Checks all flags of a sweep against its recipes, and gives each step its run's seed.

    Args:
        sweep: as `read_sweep` gives it.
        with_files: whether the files that flags name must be there.

    Returns:
        The `Sweep` with `seed={seed}` in each step whose recipe has a seed.

    Raises:
        InputError: for the first flag that a recipe does not know or take, or that names a file
            which is not there, naming file and variant; and for several seeds where a variant's
            runs would not differ by them.
    """
    by_recipe = {}
    for name, steps in sweep.variants.items():
        for step in steps:
            by_recipe.setdefault(step.recipe, []).append((name, step))
    with_seed = set()
    for recipe, uses in by_recipe.items():
        # With some folder and seed in place of those that each run has.
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
        own = {"seed": "{seed}"} if step.recipe in with_seed else {}
        return dataclasses.replace(step, flags=own | step.flags)

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
    """The names of the recipes that a sweep can run."""
    folder = pathlib.Path(__file__).parent
    found = (p.stem for p in folder.glob("*.py") if "\ndef main():\n" in p.read_text("utf-8"))
    return sorted({*found} - {"demo", "sweep"})


def _takes_seed(step):
    # Where outputs of a teacher are cached decides nothing.
    return any("{seed}" in value for name, value in step.flags.items() if name != "cache_dir")


def _filled(text, places):
    # Not by `format`: other braces stay.
    for name, place in places.items():
        text = text.replace(f"{{{name}}}", str(place))
    return text


def _common_steps(path, content):
    """The steps of the variants that give none of their own, or None."""
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
    own = {key: content[key] for key in ("recipe", "flags") if key in content}
    return _steps(f"{path}", [own])


def _variant(place, given, common):
    """The steps of a variant: its own, or the common ones with its flags."""
    given = {} if given in ("", None) else given
    if not isinstance(given, dict):
        raise InputError(f"{place} must be a mapping of flags, not {given!r}.")
    if "steps" in given:
        if len(given) > 1:
            other = next(key for key in given if key != "steps")
            raise InputError(f"{place} has `steps` of its own; give {other!r} within them.")
        return _steps(place, given["steps"])
    if common is None:
        raise InputError(f"{place} has no `steps`, and the file no `recipe`; give one of them.")
    steps = {step.name: step for step in common}
    first = common[0].name
    changes = {name: {} for name in steps}
    for key, value in given.items():
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


def _steps(place, given):
    if not isinstance(given, list) or not given:
        raise InputError(f"{place}: `steps` must be a list of recipes with their `flags`.")
    found, known = [], recipes()
    for number, step in enumerate(given, 1):
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
        if name in [s.name for s in found]:
            raise InputError(f"{here}: there is a step {name!r} already; give one another `name`.")
        found.append(Step(name, recipe, _flags(here, flags)))
    return found


def _flags(place, given):
    """Flags as texts; those that are empty are left at their defaults."""
    found = {}
    for name, value in given.items():
        if name in OWN:
            raise InputError(f"{place}: --{name} is the sweep's own; leave it out.")
        if isinstance(value, list) and not any(isinstance(x, dict | list) for x in value):
            value = ",".join(value)
        if not isinstance(value, str):
            raise InputError(f"{place}: --{name} must be one value, or a list of values.")
        if value:
            found[name] = value
    return found


def _seeds(path, given):
    given = given if isinstance(given, list) else [given]
    if not given or not all(isinstance(s, str) and s.isdecimal() for s in given):
        raise InputError(f"{path}: `seeds` must be a list of whole numbers, such as [0, 1, 2].")
    seeds = [int(seed) for seed in given]
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
    """Raises an InputError if a file or a folder is not there that no step will write."""
    is_folder = flag.endswith("_dir") and flag != "cache_dir"
    if "{" in value or not (is_folder or flag in FILES):
        return
    for part in value.split(","):
        there = pathlib.Path(part).exists() or (is_folder and is_hub_name(part))
        if not there:
            kind = "folder" if is_folder else "file"
            raise InputError(f"{place}: --{flag}={part} is no {kind}; check the path.")


def _ask(recipe, lines):
    """What a recipe says of command lines: the names of its flags, and an error or None each."""
    # Flags are global: each recipe's are defined in a process of its own.
    done = subprocess.run(
        [sys.executable, "-m", "recipes.flag_check", recipe],
        input=json.dumps(lines),
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    found = json.loads(done.stdout)
    return found["flags"], found["errors"]


def _read(path):
    """The content of a YAML or JSON file, in which all scalars are texts as they are written."""
    check_file(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as e:
        raise InputError(f"{path} is not UTF-8 text (byte {e.start}); save it as UTF-8.") from None
    if path.suffix not in (".yaml", ".yml", ".json"):
        raise InputError(f"{path} must end in .yaml, .yml or .json to tell its format.")
    content = _from_json(path, text) if path.suffix == ".json" else _from_yaml(path, text)
    if not isinstance(content, dict):
        raise InputError(f"{path} must be a mapping with `recipe`, `flags` and `variants`.")
    return content


def _from_json(path, text):
    def mapping(pairs):
        found = dict(pairs)
        if len(found) < len(pairs):
            keys = [key for key, _ in pairs]
            twice = next(key for key in keys if keys.count(key) > 1)
            raise InputError(f"{path} has {twice!r} twice in one mapping; give each name once.")
        return found

    def as_texts(value):
        if isinstance(value, dict):
            return {key: as_texts(entry) for key, entry in value.items()}
        if isinstance(value, list):
            return [as_texts(entry) for entry in value]
        return {None: "", True: "true", False: "false"}.get(value, value)

    try:
        content = json.loads(text, object_pairs_hook=mapping, parse_int=str, parse_float=str)
    except json.JSONDecodeError as e:
        raise InputError(f"{path}, line {e.lineno}: not valid JSON ({e.msg}).") from None
    return as_texts(content)


def _from_yaml(path, text):
    try:
        node = yaml.compose(text, yaml.BaseLoader)
    except yaml.MarkedYAMLError as e:
        line = f", line {e.problem_mark.line + 1}" if e.problem_mark else ""
        raise InputError(f"{path}{line}: not valid YAML ({e.problem}).") from None
    except yaml.YAMLError as e:
        raise InputError(f"{path}: not valid YAML ({' '.join(str(e).split())}).") from None
    return None if node is None else _from_node(path, node)


def _from_node(path, node):
    """A node of YAML as a text, list or dict; `<<` merges mappings."""
    if isinstance(node, yaml.ScalarNode):
        # YAML would make booleans of "no" and "on", and PyYAML no number of 1e-4.
        return "" if node.style is None and node.value in ("null", "~") else node.value
    if isinstance(node, yaml.SequenceNode):
        return [_from_node(path, child) for child in node.value]
    own, merged = {}, {}
    for key, value in node.value:
        line = key.start_mark.line + 1
        if not isinstance(key, yaml.ScalarNode):
            raise InputError(f"{path}, line {line}: a name must be a text.")
        if key.value in own:
            raise InputError(
                f"{path}, line {line}: {key.value!r} is there twice; give each name once."
            )
        if key.value == "<<":
            given = _from_node(path, value)
            for one in given if isinstance(given, list) else [given]:
                if not isinstance(one, dict):
                    raise InputError(f"{path}, line {line}: << takes mappings alone.")
                merged = one | merged
        else:
            own[key.value] = _from_node(path, value)
    return merged | own
