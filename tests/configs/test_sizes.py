"""Families and sizes by name."""

import pytest

from tfnlp.configs import SIZES, DebertaV2Config, TransformerXLConfig, config_by_name
from tfnlp.utils.errors import InputError


def test_fields_replace_those_of_the_size():
    assert config_by_name(size="deberta-v3-small") == SIZES["deberta_v3_small"]
    small = config_by_name("deberta_v2", "deberta_v3_small", num_layers=2, hidden_dim=96)
    assert small == DebertaV2Config(
        num_layers=2, num_heads=12, hidden_dim=96, intermediate_dim=384
    )
    assert config_by_name(hidden_dim=32, intermediate_dim=40).intermediate_dim == 40
    assert config_by_name().hidden_dim == 256
    # Clusters of an adaptive softmax end with the vocabulary.
    assert TransformerXLConfig().cutoffs == (20000, 40000, 200000)
    assert config_by_name("transformer-xl", vocabulary_size=30000).cutoffs == (20000,)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"family": "bart"}, "family=bart"),
        ({"size": "huge"}, "size=huge"),
        ({"family": "bert", "size": "xlnet_base"}, "size=xlnet_base"),
        ({"hidden_dim": 30}, "hidden_dim=30"),
    ],
)
def test_unknown_names_and_sizes_that_do_not_fit_are_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        config_by_name(**arguments)
