"""Families and sizes that have a name, as data: `SIZES["tinybert_4l_312"]` is a config."""

import collections
import dataclasses

from tfnlp import families
from tfnlp.utils.errors import InputError, unknown_name
from tfnlp.utils.lazy_dictionary import LazyDictionary

# Config classes by the names of families; those that make a text of another have no heads of
# encoders.
FAMILIES, ENCODER_DECODERS = (
    LazyDictionary(
        {
            name: family.config
            for family in families.FAMILIES.values()
            for name in family.names
            if family.translates == translates
        }
    )
    for translates in (False, True)
)
# The first four fields of a config.
_SHAPE = ("num_layers", "num_heads", "hidden_dim", "intermediate_dim")
# Defaults of a transformer without a size; other families have those of their configs.
SMALL = dict(zip(_SHAPE, (4, 4, 256, 1024), strict=True))


class _Sizes(collections.UserDict):
    """Configs by name, each built when it is asked for."""

    def __getitem__(self, name):
        family, (*shape,) = self.data[name]
        fields = shape.pop() if shape and isinstance(shape[-1], dict) else {}
        return family.load("config")(**dict(zip(_SHAPE, shape, strict=False)) | fields)


SIZES = _Sizes(
    {
        name: (family, shape)
        for family in families.FAMILIES.values()
        for name, shape in family.sizes.items()
    }
)


def config_by_name(family=None, size=None, **fields):
    """Return the config of a named family or size.

    Args:
        family: one of `FAMILIES` or `ENCODER_DECODERS`; that of the size if None, "bert"
            without either. A transformer alone has 4 layers of width 256.
        size: one of `SIZES`; None for none.
        fields: of the config, instead of the size's own; None for those that stay. A
            `hidden_dim` alone has an `intermediate_dim` of four times as much.

    Raises:
        InputError: for an unknown family or size, a size of another family, and fields that the
            family lacks, or that do not fit each other.
    """
    configs = FAMILIES | ENCODER_DECODERS
    family, size = _checked_name("family", family, configs), _checked_name("size", size, SIZES)
    kind = configs[family or "bert"]
    config = SIZES[size] if size else kind(**SMALL) if kind.attends else kind()
    if family and type(config) is not kind:
        raise InputError(f"size={size} is of another family than family={family}; leave one out.")
    fields = {name: value for name, value in fields.items() if value is not None}
    config_fields = {field.name for field in dataclasses.fields(config)}
    if "hidden_dim" in fields and "intermediate_dim" in config_fields:
        fields = {"intermediate_dim": 4 * fields["hidden_dim"]} | fields
    if "cell" in config_fields and family in FAMILIES:  # it is named by its cell
        fields = {"cell": family} | fields
    for name in fields.keys() - config_fields:
        kind = family or size or "bert"
        raise InputError(f"{name}={fields[name]} is no field of the family {kind}; leave it out.")
    if "vocabulary_size" in fields and config.adaptive_softmax:
        # Clusters of tokens that there are not.
        kept = tuple(c for c in config.cutoffs if c < fields["vocabulary_size"])
        fields = {"cutoffs": kept} | fields
    return dataclasses.replace(config, **fields)


def _checked_name(argument, name, names):
    """Return a name with underscores for hyphens; raise an InputError unless it is in `names`."""
    underscored = name and name.replace("-", "_")
    if name is not None and underscored not in names:
        raise unknown_name(argument, name, names)
    return underscored
