"""The two models of an ELECTRA over one set of embedding tables (Clark et al. 2020, 3.2)."""

import pytest

from tfnlp.models import BertConfig, ElectraConfig, build_model
from tfnlp.utils.errors import InputError

SIZES = {"vocabulary_size": 40, "num_layers": 1, "max_length": 16, "dropout": 0.0}
GENERATOR = ElectraConfig(
    hidden_dim=8, intermediate_dim=12, num_heads=2, embedding_dim=16, **SIZES
)
DISCRIMINATOR = ElectraConfig(
    hidden_dim=24, intermediate_dim=30, num_heads=3, embedding_dim=16, **SIZES
)


@pytest.fixture
def models():
    generator = build_model(GENERATOR, "masked_lm")
    return generator, build_model(DISCRIMINATOR, "discriminator", shared_embeddings=generator)


def test_tables_and_norm_are_shared_and_projections_are_not(models):
    generator, discriminator = models
    ours, theirs = (
        {id(v): v.path for v in m.get_layer("embeddings").weights}
        for m in (generator, discriminator)
    )
    common = {ours[key].split("/", 1)[1] for key in ours.keys() & theirs.keys()}
    tables = {"token_table", "position_table", "segment_table", "norm/gamma", "norm/beta"}
    assert common == tables
    whole = {f"embeddings/{x}" for x in tables | {"projection/kernel", "projection/bias"}}
    assert {*theirs.values()} == {*ours.values()} == whole


def test_tables_that_cannot_be_shared_are_refused(models):
    generator, _ = models
    narrow = ElectraConfig(hidden_dim=24, num_heads=3, embedding_dim=12, **SIZES)
    with pytest.raises(ValueError, match=r"embedding_dim is 12, but .* 16"):
        build_model(narrow, "discriminator", shared_embeddings=generator)
    with pytest.raises(InputError, match="'bert' with a electra; only the two models"):
        build_model(BertConfig(**SIZES), shared_embeddings=generator)
