"""Flags made from the fields of a settings dataclass, which say their help and bounds.

A field with the metadata `help` (see `tfnlp.utils.settings.setting`) is a flag of its name:

    dataclass_flags.define(TrainingConfig, "epochs", "seed", epochs=30)
    config = dataclass_flags.read(TrainingConfig)
"""

import dataclasses

from absl import flags

from recipes.shell.command_line import flag_text, hide, no_effect

FLAGS = flags.FLAGS


def define(config, *names, **defaults):
    """Define a flag for each named field of a dataclass.

    Args:
        config: a dataclass.
        names: of its fields; all if there is neither a name nor a default.
        defaults: {name: default} of fields whose default is another in this recipe.
    """
    fields = {field.name: field for field in dataclasses.fields(config)}
    for name in dict.fromkeys([*names, *defaults]) or fields:
        _define(fields[name], defaults.get(name, fields[name].default), **fields[name].metadata)


def define_choice(configs):
    """Define a flag without a default for each field of dataclasses, one of which is chosen.

    Args:
        configs: {choice: dataclass}.
    """
    fields = {}
    for choice, config in configs.items():
        for field in dataclasses.fields(config):
            fields.setdefault(field.name, {})[choice] = field
    for uses in fields.values():
        field, defaults = next(iter(uses.values())), {}
        for choice, use in uses.items():
            default = "" if use.default is None else f": {flag_text(use.default)}"
            defaults.setdefault(default, []).append(choice)
        defaults = (f"{', '.join(names)}{default}" for default, names in defaults.items())
        help = f"{field.metadata['help']} ({'; '.join(defaults)})"
        _define(field, None, **field.metadata | {"help": help})


def _define(field, default, help, choices=None, rare=False, low=None, high=None, **_):
    if rare:
        hide(field.name)
    if choices:
        flags.DEFINE_enum(field.name, default, choices, help)
    elif field.type is bool:
        flags.DEFINE_bool(field.name, default, help)
    elif field.type in (float, float | None):
        flags.DEFINE_float(field.name, default, help, low, high)
    elif field.type in (int, int | None):
        flags.DEFINE_integer(field.name, default, help, low, high)
    else:
        flags.DEFINE_string(field.name, default, help)


def read(config, **values):
    """Return a dataclass with the values of the flags, or with `values` in their place.

    A field has its default if there is no flag, or if the flag is not given and has no default.
    """
    names = [field.name for field in dataclasses.fields(config) if field.name in FLAGS]
    settings = {name: FLAGS[name].value for name in names if FLAGS[name].value is not None}
    return config(**settings | values)


def refuse_others(config, configs, where):
    """Raise an InputError for a given flag that is a field of one of `configs`, not of `config`.

    Args:
        config: the dataclass that the flags choose.
        configs: all dataclasses of the choice.
        where: the end of "has no effect" in the message.
    """
    fields = {field.name for field in dataclasses.fields(config)}
    others = {field.name for other in configs for field in dataclasses.fields(other)} - fields
    for name in sorted(others):
        if name in FLAGS and FLAGS[name].present:
            raise no_effect(name, where)
