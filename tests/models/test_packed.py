"""Rows of several documents, against each document alone."""

import keras
import numpy as np
import pytest

from tests.models.small import sizes
from tfnlp import configs, models
from tfnlp.objectives.masked_positions import logits_at_positions
from tfnlp.utils.errors import InputError

LENGTHS = (5, 9, 3)
SIZES = sizes(vocabulary_size=40, max_length=20, initializer_range=0.5)
SHARED = {**SIZES, "embedding_dim": 6}
DEBERTA = {**SIZES, "max_distance": 8}
CONFIGS = {
    "bert": (configs.BertConfig(**SIZES), "masked_lm"),
    "roberta": (configs.RobertaConfig(**SIZES), "masked_lm"),
    "distilbert": (configs.DistilBertConfig(**SIZES), "masked_lm"),
    "albert": (configs.AlbertConfig(**SHARED), "masked_lm"),
    "electra": (configs.ElectraConfig(**SHARED), "discriminator"),
    "deberta": (configs.DebertaConfig(**DEBERTA, enhanced_mask_decoder=True), "masked_lm"),
    "deberta_v3": (configs.DebertaV2Config(**DEBERTA, num_buckets=4), "discriminator"),
    "modernbert": (configs.ModernBertConfig(**SIZES, local_attention=6), "masked_lm"),
    "gpt": (configs.GptConfig(**SIZES), "causal_lm"),
    "gpt2": (configs.Gpt2Config(**SIZES), "causal_lm"),
}


def documents():
    rng = np.random.default_rng(1)
    return [rng.integers(5, 40, (1, length)).astype("int32") for length in LENGTHS]


def inputs_of(ids):
    return {"token_ids": ids, "segment_ids": ids % 2 * 0, "padding_mask": np.ones_like(ids)}


def packed_inputs(padding):
    """Return a row of all documents with padding behind them."""
    row = inputs_of(np.concatenate(documents(), axis=1))
    row["positions"] = np.concatenate([np.arange(n) for n in LENGTHS])[None].astype("int32")
    return {name: np.pad(x, [(0, 0), (0, padding)]) for name, x in row.items()}


def build_pair(config, head, **options):
    """Return a model of rows of documents, and one of documents alone with the same weights."""
    keras.utils.set_random_seed(3)
    alone = models.build_model(config, head)
    packed = models.build_model(config, head, packed=True, **options)
    packed.set_weights(alone.get_weights())
    return packed, alone


@pytest.mark.parametrize(
    ("family", "block_size"), [*((family, None) for family in CONFIGS), ("gpt2", 4)]
)
def test_documents_of_a_row_are_those_of_documents_alone(family, block_size):
    packed, alone = build_pair(*CONFIGS[family], block_size=block_size)
    due = [alone(inputs_of(ids))["logits"] for ids in documents()]
    row = packed(packed_inputs(2))["logits"][:, : sum(LENGTHS)]
    np.testing.assert_allclose(row, np.concatenate(due, axis=1), rtol=0, atol=1e-5)


def test_masked_positions_see_their_own_document():
    packed, _ = build_pair(*CONFIGS["bert"])
    row, places = packed_inputs(2), np.array([[0, 4, 6, 15]], "int32")
    few = logits_at_positions(packed)(row | {"masked_positions": places})["logits"]
    np.testing.assert_allclose(few[0], packed(row)["logits"].numpy()[0, places[0]], atol=1e-5)


@pytest.mark.parametrize(
    ("config", "head"),
    [
        (configs.XLNetConfig(**SIZES), "permutation_lm"),
        (configs.BertConfig(**SIZES), "classifier"),
        (configs.DebertaV2Config(**DEBERTA, num_buckets=4, convolution_size=3), "masked_lm"),
    ],
)
def test_what_would_see_other_documents_is_refused(config, head):
    with pytest.raises(InputError, match=r"packed=True does not fit"):
        models.build_model(config, head, num_classes=2, packed=True)
