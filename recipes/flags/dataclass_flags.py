"""Flags made from the fields of a settings dataclass, which say their help and bounds.

A field of `tfnlp.utils.settings.setting` is a flag of its name:

    dataclass_flags.define(TrainingConfig, "epochs", "seed", epochs=30)
    config = dataclass_flags.read(TrainingConfig)
"""

import dataclasses
import functools
import re
import types
import typing

from absl import flags

from recipes.shell.command_line import flag_text, hide, no_effect, read_numbers
from tfnlp.utils.settings import metadata_of

FLAGS = flags.FLAGS


def define(config, *names, **defaults):
    """Define a flag for each named field of a dataclass.

    Args:
        config: a dataclass.
        names: of its fields; all with a help if there is neither a name nor a default.
        defaults: {name: default} of fields whose default is another in this recipe.
    """
    fields = {field.name: field for field in dataclasses.fields(config)}
    known = functools.partial(metadata_of, config)
    for name in dict.fromkeys([*names, *defaults]) or filter(known, fields):
        _define(fields[name], defaults.get(name, fields[name].default), **known(name))


def define_choice(configs, defaults=None):
    """Define a flag without a default for each field of dataclasses, one of which is chosen.

    Args:
        configs: {choice: dataclass}.
        defaults: {choice: {name: default}} of the fields that are flags; where None all, with
            their own defaults.
    """
    uses = {}
    for choice, config in configs.items():
        fields = {field.name: field for field in dataclasses.fields(config)}
        for name in defaults[choice] if defaults else fields:
            default = defaults[choice][name] if defaults else fields[name].default
            text = "" if default is None else f": {flag_text(default)}"
            first = uses.setdefault(name, (fields[name], metadata_of(config, name), {}))
            first[2].setdefault(text, []).append(choice)
    for field, metadata, by_default in uses.values():
        texts = "; ".join(f"{', '.join(names)}{text}" for text, names in by_default.items())
        _define(field, None, **metadata | {"help": f"{metadata['help']} ({texts})"})


def _define(field, default, help, choices=None, rare=False, low=None, high=None, flag=None, **_):
    name, kind = flag or field.name, _without_none(field.type)
    help = re.sub("`(.*?)`", r"--\1", help)  # the library names fields, recipes flags
    if rare:
        hide(name)
    if choices:
        flags.DEFINE_enum(name, default, [*choices, *_none(field)], help)
    elif kind is bool:
        flags.DEFINE_bool(name, default, help)
    elif kind is float:
        flags.DEFINE_float(name, default, help, low, high)
    elif kind is int:
        flags.DEFINE_integer(name, default, help, low, high)
    elif typing.get_origin(kind) is tuple:
        flags.DEFINE_list(name, default and [*map(str, default)], help)
    else:
        flags.DEFINE_string(name, default, help)


def _without_none(kind):
    """Return X of the type X | None, or a type as it is."""
    return typing.get_args(kind)[0] if isinstance(kind, types.UnionType) else kind


def _none(field):
    """Return the choice of None: "none" beside another default."""
    return ["none"] if field.type == str | None and field.default is not None else []


def read(config, **values):
    """Return a dataclass with the values of the flags, or with `values` in their place.

    A field has its default if there is no flag, or if the flag is not given and has no default.
    """
    return config(**given(config, values) | values)


def given(config, others=()):
    """Return {field: value} of a dataclass's flags that are given or have a default.

    Args:
        config: a dataclass.
        others: names of fields to leave out, whose flags may be written otherwise.
    """
    settings = {}
    for field in dataclasses.fields(config):
        if field.name in others:
            continue
        name = metadata_of(config, field.name).get("flag") or field.name
        value = FLAGS[name].value if name in FLAGS else None
        kind = _without_none(field.type)
        if value is not None:
            if typing.get_origin(kind) is tuple:
                value = tuple(read_numbers(name, typing.get_args(kind)[0]))
            settings[field.name] = None if value in _none(field) else value
    return settings


def refuse_others(config, configs, where):
    """Raise an InputError for a given flag that is a field of one of `configs`, not of `config`.

    Args:
        config: the dataclass that the flags choose, or the names of its flags.
        configs: all dataclasses of the choice, or names likewise.
        where: the end of "has no effect" in the message.
    """
    fields = set(_names(config))
    for name in sorted({name for other in configs for name in _names(other)} - fields):
        if name in FLAGS and FLAGS[name].present:
            raise no_effect(name, where)


def _names(config):
    if dataclasses.is_dataclass(config):
        return [field.name for field in dataclasses.fields(config)]
    return config
