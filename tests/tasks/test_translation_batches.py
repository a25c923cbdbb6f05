"""Batches of pairs with a token limit."""

import itertools

import numpy as np

from tfnlp.tasks.translation_batches import ScheduledSampling, TranslationBatches
from tfnlp.text.batching.encoding import EncodingsBuilder


def encodings(rows):
    builder = EncodingsBuilder()
    for row in rows:
        builder.add_ids(list(row), [0] * len(row))
    return builder.finish()


def random_batches(count=300, max_tokens=120, shuffle=True, seed=0):
    rng = np.random.default_rng(7)
    sides = [
        encodings([[*rng.integers(4, 60, n - 1), 3] for n in rng.integers(2, 30, count)])
        for _ in range(2)
    ]
    return TranslationBatches(*sides, max_tokens, 0, 1, shuffle, seed)


def test_batches_hold_every_pair_once_and_no_more_tokens_than_allowed():
    batches = random_batches()
    orders = [batches.batch_indices(epoch) for epoch in (0, 0, 1)]
    for order in orders:
        assert sorted(np.concatenate(order)) == [*range(300)]
        assert len(order) == len(batches)
        for indices in order:
            inputs, labels = batches.batch(indices)
            assert inputs["encoder_token_ids"].size + labels.size <= 120
    assert [list(x) for x in orders[0]] == [list(x) for x in orders[1]]
    assert sorted(map(len, orders[0])) == sorted(map(len, orders[2]))
    assert [list(x) for x in orders[0]] != [list(x) for x in orders[2]]
    assert batches.padding_share() < 0.13
    assert batches.lengths.max() == 29


def test_a_batch_ends_where_the_next_pair_has_no_room():
    batches = random_batches(shuffle=False)
    sizes = np.stack([batches.sources.lengths, batches.targets.lengths], axis=1)
    order = batches.batch_indices()
    for here, after in itertools.pairwise(order):
        with_next = [*here, after[0]]
        assert len(with_next) * sizes[with_next].max(axis=0).sum() > 120


def test_the_rest_of_an_epoch_and_the_fingerprint():
    batches = random_batches()
    whole, rest = [*batches.epoch(3)], [*batches.epoch(3, skip=5)]
    for a, b in zip(whole[5:], rest, strict=True):
        np.testing.assert_array_equal(a[0]["encoder_token_ids"], b[0]["encoder_token_ids"])
    data = [*batches.dataset(lambda: 3, 5)]
    np.testing.assert_array_equal(data[0][1], rest[0][1])
    assert batches.fingerprint() == random_batches().fingerprint()
    changes = ({}, {"seed": 1}, {"shuffle": False}, {"max_tokens": 121})
    assert len({random_batches(**change).fingerprint() for change in changes}) == 4
    still = random_batches(shuffle=False)
    assert [list(x) for x in still.batch_indices(0)] == [list(x) for x in still.batch_indices(1)]


def test_the_share_of_positions_where_predictions_are_fed_rises():
    few = ScheduledSampling(random_batches(20, 300), rate=1.0, epochs=2)
    fed = [inputs["feed_predictions"] for i in range(2) for inputs, _ in few.epoch(i)]
    assert not fed[0].any() and fed[-1].all() and not all(one.all() for one in fed[1:-1])
    pairs = random_batches(max_tokens=600)
    batches = ScheduledSampling(pairs, 0.8, epochs=5)
    shares = [
        np.mean([inputs["feed_predictions"].mean() for inputs, _ in batches.epoch(epoch)])
        for epoch in range(5)
    ]
    # Linear from 0 to 0.8: the means of fifths.
    np.testing.assert_allclose(shares, [0.08, 0.24, 0.4, 0.56, 0.72], atol=0.03)
    (*_, (one, _)), (*_, (same, _)) = batches.epoch(2), batches.epoch(2, skip=3)
    np.testing.assert_array_equal(one["feed_predictions"], same["feed_predictions"])
    assert batches.fingerprint() != ScheduledSampling(pairs, 0.7, epochs=5).fingerprint()
