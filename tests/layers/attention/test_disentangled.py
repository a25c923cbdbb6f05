"""What DeBERTa's attention has beside what tests/parity compares with `transformers`."""

import numpy as np
import pytest

from tests.layers.witnesses import near, project, rand, randomise
from tfnlp.functional.positions import log_buckets
from tfnlp.layers import ATTENTION_TERMS, DisentangledAttention, RelativePositionTable


@pytest.mark.parametrize(("buckets", "share"), [(None, False), (4, True)])
def test_the_term_of_two_positions_is_added_to_the_other_three(buckets, share):
    """The fourth term of He et al. 2020, which their models leave out."""
    x, table = rand(2, 17, 12), rand(2 * (buckets or 7), 12, seed=1)
    options = {"max_distance": 7, "num_buckets": buckets, "share_att_key": share}
    scores = []
    for terms in (ATTENTION_TERMS, ("c2c", "c2p", "p2c"), ("p2p",)):
        layer = DisentangledAttention(3, 4, terms=terms, **options)
        layer(x, position_table=table)
        for w in layer.weights:
            w.assign(0.5 * rand(*w.shape, seed=len(w.path.split("/", 1)[1])))
        scaled = layer(x, position_table=table, return_attention_scores=True)[1]
        scores.append(np.sqrt(4 * len(terms)) * scaled)
    near(scores[0], scores[1] + scores[2])
    distances = np.subtract.outer(np.arange(17), np.arange(17))
    if buckets:
        distances = np.asarray(log_buckets(distances, buckets, 7))
    rows = np.clip(distances + len(table) // 2, 0, len(table) - 1)
    parts = (layer.query, layer.key) if share else (layer.position_query, layer.position_key)
    query, key = (project(dense, table).reshape(-1, 3, 4)[rows] for dense in parts)
    near(scores[2], np.tile((query * key).sum(-1).transpose(2, 0, 1), (2, 1, 1, 1)))


def test_a_table_of_its_own_is_normalised_on_request():
    x = rand(2, 9, 12)
    norm = {"layer_norm_epsilon": 0.5}
    layer = DisentangledAttention(3, 4, max_distance=5, normalize_positions=True, **norm)
    shared = DisentangledAttention(3, 4, max_distance=5)
    table = RelativePositionTable(5, normalize=True, **norm)
    layer(x), shared(x, position_table=table(x))
    randomise(layer)
    table.set_weights(layer.own_table.get_weights())
    others = {w.path.split("/", 1)[1]: w for w in layer.weights}
    for weight in shared.weights:
        weight.assign(others[weight.path.split("/", 1)[1]])
    near(layer(x), shared(x, position_table=table(x)))
