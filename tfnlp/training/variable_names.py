"""Stable names of training variables, to restore them in another process."""

import collections
import re


def variable_names(model):
    """Return all variables that the training depends on, by a stable name.

    A name is the variable's path. The numbers that Keras counts through a process, as in
    "dense_7" or "seed_generator_12", restart at each position; variables of one name are
    distinguished by their order. An optimizer's variable is named after the variable it belongs
    to.

    Args:
        model: a compiled `keras.Model`, its optimizer built.

    Returns:
        A dict of variables.
    """
    metrics = {id(v) for v in model.metrics_variables}
    own = [v for v in _once(model.variables) if id(v) not in metrics]
    held = _once(model.optimizer.variables)
    names = _stable([v.path for v in own])
    # Keras has "adam/dense_7_kernel_momentum": the longest matching variable is the owner.
    owners = sorted(
        ((v.path.replace("/", "_") + "_", name) for v, name in zip(own, names, strict=True)),
        key=lambda owner: -len(owner[0]),
    )
    optimizers = list(dict.fromkeys(v.path.partition("/")[0] for v in held))
    stable = dict(zip(optimizers, _stable(optimizers), strict=True))
    for variable in held:
        optimizer, _, rest = variable.path.partition("/")
        prefix, owner = next(((p, n) for p, n in owners if rest.startswith(p)), ("", ""))
        parts = stable[optimizer], owner, rest.removeprefix(prefix)
        names.append("/".join(part for part in parts if part))
    return _by_name(names, own + held)


def metric_names(model):
    """Return the variables of a model's metrics by stable names, a dict."""
    found = _once(model.metrics_variables)
    return _by_name(_stable([v.path for v in found]), found)


def _once(variables):
    return list({id(v): v for v in variables}.values())


def _by_name(names, variables):
    seen, found = collections.Counter(), {}
    for name, variable in zip(names, variables, strict=True):
        found[f"{name}#{seen[name]}" if seen[name] else name] = variable
        seen[name] += 1
    return found


def _stable(paths):
    """Return the paths as a fresh process would name them."""
    numbers = collections.defaultdict(set)
    for path in paths:
        for place, number, _ in _numbered(path):
            numbers[place].add(number)

    def counted_anew(place, number, part):
        if 0 in numbers[place]:  # the user's name: Keras counts "dense", "dense_1"
            return part
        rank = sorted(numbers[place]).index(number)
        return f"{place[-1]}_{rank}" if rank else place[-1]

    return ["/".join(counted_anew(*part) for part in _numbered(path)) for path in paths]


def _numbered(path):
    """Yield for each part of a path its place (parents, base name), its number or -1, itself."""
    parts = path.split("/")
    for i, part in enumerate(parts):
        name, number = re.fullmatch(r"(.+?)(?:_(0|[1-9]\d*))?", part, re.DOTALL).groups()
        yield (*parts[:i], name), -1 if number is None else int(number), part
