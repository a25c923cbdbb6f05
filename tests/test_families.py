"""The record of each family has all of its parts, and the page on models says what it says."""

import inspect
import pathlib

import pytest

from tfnlp import configs
from tfnlp.checkpoints.checkpoint_map import MAPS
from tfnlp.configs import config_by_name
from tfnlp.families import FAMILIES, MODEL_TYPES, family_of
from tfnlp.utils.errors import InputError

ROOT = pathlib.Path(__file__).parents[1]


def rows():
    """Return the lines of the table of families of docs/models.md."""
    yield "| family | sizes | in config.json | tokenizer | pretrained by |"
    yield "| --- | --- | --- | --- | --- |"
    for family in FAMILIES.values():
        if family.names:
            cells = family.names, family.sizes, family.maps, family.objectives
            names, sizes, types, objectives = (", ".join(f"`{x}`" for x in cell) for cell in cells)
            kinds = [family.tokenizer, family.any_tokenizer and "any"]
            tokenizer = " or ".join(filter(None, kinds))
            yield f"| {names} | {sizes} | {types} | {tokenizer} | {objectives} |"


def test_the_page_has_the_table_of_families():
    assert "\n".join(rows()) in (ROOT / "docs/models.md").read_text(encoding="utf-8")


def test_every_config_class_is_a_familys():
    public = filter(inspect.isclass, (getattr(configs, name) for name in dir(configs)))
    classes = {cls for cls in public if issubclass(cls, configs.BaseConfig)}
    classes -= {configs.BaseConfig, configs.TextConfig}
    assert classes == {family.load("config") for family in FAMILIES.values()}


@pytest.mark.parametrize("name", FAMILIES)
def test_all_parts_of_a_family_are_there(name):
    family = FAMILIES[name]
    assert callable(family.load("build"))
    for model_type in family.maps:
        checkpoint_map = MAPS[model_type]
        assert checkpoint_map.model_type == model_type and MODEL_TYPES[model_type] is family
        assert checkpoint_map.config is family.load("config")
    for asked in family.names:
        config = config_by_name(asked)
        assert family_of(config) is family and config.model_type in family.maps


def test_a_child_of_a_config_is_of_no_family():
    class Narrow(configs.BertConfig):
        pass

    with pytest.raises(InputError, match="Narrow is the config of no family"):
        family_of(Narrow())
