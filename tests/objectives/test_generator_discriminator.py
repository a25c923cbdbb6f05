"""Configs of generators."""

import dataclasses

import pytest
from tfnlp.objectives.generator_discriminator import generator_config

from tests.objectives.small import CONFIGS
from tfnlp.models import ElectraConfig


@pytest.mark.parametrize("name", CONFIGS)
def test_generators_are_of_the_size_of_the_papers(name):
    config = CONFIGS[name]
    found = generator_config(config)
    if name.startswith("electra"):
        due = {"hidden_dim": 4, "num_heads": 1, "intermediate_dim": 8}
        assert found == dataclasses.replace(config, **due)
        half = {"hidden_dim": 8, "num_heads": 2, "intermediate_dim": 16}
        assert generator_config(config, 0.5) == dataclasses.replace(config, **half)
    else:
        decoder = name == "deberta_v3"
        due = {"num_layers": 1, "enhanced_mask_decoder": decoder}
        assert found == dataclasses.replace(config, **due)
    base = ElectraConfig(num_heads=12, hidden_dim=768, intermediate_dim=3072, embedding_dim=768)
    # The released generator of the base size.
    third = generator_config(base, 1 / 3)
    assert (third.hidden_dim, third.num_heads, third.intermediate_dim) == (256, 4, 1024)
    assert third.embedding_dim == 768 and third.num_layers == 12
