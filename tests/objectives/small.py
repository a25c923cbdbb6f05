"""Small corpora, models of a generator's and a discriminator's families, and a batch."""

import numpy as np

from tests.models.small import sizes
from tfnlp.models import DebertaConfig, DebertaV2Config, ElectraConfig
from tfnlp.objectives import Corpus, SpecialTokenTemplate

SIZES = sizes(vocabulary_size=28, num_heads=4, hidden_dim=16, intermediate_dim=32)
SIZES |= {"max_length": 16, "dropout": 0.0, "attention_dropout": 0.0, "initializer_range": 0.5}
RELATIVE = {"max_distance": 8}
CONFIGS = {
    "electra": ElectraConfig(**SIZES, embedding_dim=8),
    "electra_wide": ElectraConfig(**SIZES, embedding_dim=16),
    "deberta": DebertaConfig(**SIZES, **RELATIVE, absolute_positions=True),
    "deberta_v3": DebertaV2Config(**SIZES, **RELATIVE, num_buckets=4),
}
# [CLS] and [SEP] around one text and two.
TEMPLATE = SpecialTokenTemplate(
    (((2, 0),), ((3, 0),)), 0, (((2, 0),), ((3, 0),), ((3, 1),)), (0, 1)
)


def numbered(*documents):
    """Documents of sentences of these sizes, whose tokens are numbered through the corpus."""
    ids = iter(range(10, 10_000))
    return Corpus.from_documents(
        [[[next(ids) for _ in range(n)] for n in sizes] for sizes in documents]
    )


def make_batch(rows=3, length=9, masked=2, vocabulary=28, seed=0):
    """A batch of ordinary ids in which the last text is short and lacks a masked token."""
    rng = np.random.default_rng(seed)
    whole = rng.integers(5, vocabulary, (rows, length)).astype("int32")
    mask = np.ones((rows, length), "int32")
    mask[-1, 5:] = 0
    whole *= mask
    positions = np.sort(rng.permuted(np.tile(np.arange(1, 5), (rows, 1)), axis=1)[:, :masked])
    labels = np.take_along_axis(whole, positions, 1)
    positions[-1, -1], labels[-1, -1] = 0, -100
    ids = whole.copy()
    for row in range(rows):
        ids[row, positions[row, labels[row] > 0]] = 4
    inputs = {
        "token_ids": ids,
        "segment_ids": 0 * ids,
        "padding_mask": mask,
        "masked_positions": positions.astype("int32"),
        "masked_ids": labels,
        "draws": rng.random((rows, masked), "float32"),
    }
    return inputs, labels, whole


def texts_of(inputs, **other):
    """Of a batch, what an encoder reads."""
    return {key: inputs[key] for key in ("token_ids", "segment_ids", "padding_mask")} | other
