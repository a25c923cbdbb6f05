"""Spans, orders and segments of permutation batches."""

import numpy as np
import pytest

from tests.objectives.batches.test_token_stream import large_corpus
from tests.objectives.test_permutation_lm import tokens  # noqa: F401  fixture
from tfnlp.objectives import PermutationLM
from tfnlp.objectives.batches.permutation_batches import (
    draw_context_spans,
    draw_order,
    draw_targets,
)


def near_share(count, total, share):
    """Whether a count is within three standard errors of a share of a total."""
    return abs(count / total - share) < 3 * np.sqrt(share * (1 - share) / total)


def test_spans_are_as_the_paper_says():
    contexts, starts, spans = draw_context_spans(100_000, 6, 5, np.random.default_rng(0))
    count = len(spans)
    # Contexts of 6 times the span lie end to end, and each has its span in it.
    np.testing.assert_array_equal(contexts, np.cumsum(6 * spans) - 6 * spans)
    assert contexts[-1] < 100_000 <= contexts[-1] + 6 * spans[-1]
    offsets = starts - contexts
    assert (offsets >= 0).all() and (offsets + spans <= 6 * spans).all()
    harmonic = sum(1 / n for n in range(1, 6))
    for n in range(1, 6):
        assert near_share((spans == n).sum(), count, 1 / n / harmonic)
        here = offsets[spans == n]
        assert set(here) == set(range(5 * n + 1))
        error = np.sqrt(((5 * n + 1) ** 2 - 1) / 12 / len(here))
        assert abs(here.mean() - 5 * n / 2) < 3 * error
    # The paper's share of the tokens, exactly, in whole contexts.
    assert spans.sum() * 6 == contexts[-1] + 6 * spans[-1]


def test_exactly_one_in_k_tokens_is_predicted_mostly_in_spans():
    rng, in_spans, rows = np.random.default_rng(1), 0, 800
    chosen = np.zeros((rows, 128), bool)
    for row in chosen:
        targets = draw_targets(128, 128 // 6, 6, 5, rng)
        assert len(set(targets.tolist())) == len(targets) == 21
        row[targets] = True
    # 102,400 tokens: each place as often as any other, within four standard errors (128 places).
    share = 21 / 128
    assert abs(chosen.mean(0) - share).max() < 4 * np.sqrt(share * (1 - share) / rows)
    runs = np.diff(np.pad(chosen, ((0, 0), (1, 1))).astype(int), axis=1)
    lengths = np.concatenate([np.flatnonzero(r == -1) - np.flatnonzero(r == 1) for r in runs])
    in_spans = lengths[lengths > 1].sum() / lengths.sum()
    assert in_spans > 0.7 and (lengths <= 5).mean() > 0.97
    assert draw_targets(1, 1, 6, 5, rng).tolist() == [0]
    assert sorted(draw_targets(3, 3, 1, 3, rng)) == [0, 1, 2]


def test_the_order_of_a_part():
    special = np.array([False, False, False, True, False, True])
    found = [draw_order([1, 4], special, np.random.default_rng(i)) for i in range(3000)]
    for ranks in found:
        assert ranks.dtype == "int32" and ranks[[0, 2]].tolist() == [0, 0]
        assert len({*ranks[[1, 3, 4, 5]]}) == 4 and ranks[[1, 3, 4, 5]].min() > 0
    # All orders of the four alike.
    orders, counts = np.unique(
        [np.argsort(r[[1, 3, 4, 5]]) for r in found], axis=0, return_counts=True
    )
    assert len(orders) == 24 and abs(counts - 125).max() < 4 * np.sqrt(125)


@pytest.mark.parametrize("bidirectional", [False, True])
def test_lanes_advance_by_the_reuse_length(tokens, bidirectional):  # noqa: F811
    objective = PermutationLM(8, predict_one_in=3, max_span=2, bidirectional=bidirectional)
    corpus = large_corpus(documents=30, lowest=7)
    batches = objective.batches(corpus, tokens, 4, 21, seed=4)
    end, (sep, cls) = tokens.token_id("</s>"), map(tokens.token_id, ("<sep>", "<cls>"))
    assert batches.end_token_id == end and batches.predictions == 8 // 3 + 10 // 3 == 5
    found = list(batches.epoch(1))
    lanes = 2 if bidirectional else 4
    size = batches.tokens // lanes
    assert len(found) == len(batches) == (size - 18) // 8 + 1 and batches.rows == 4 * len(found)
    stream = batches.stream(1)
    flat = stream.read(0, batches.tokens)
    follows, elsewhere, cuts = 0, 0, 0
    for number, (inputs, labels) in enumerate(found):
        assert inputs["continues"].tolist() == [int(number > 0)] * 4
        for row in range(4):
            ids, order = inputs["token_ids"][row], inputs["permutation_order"][row]
            lane = flat[(row % lanes) * size : (row % lanes + 1) * size]
            backward = row >= lanes
            lane = lane[::-1] if backward else lane
            here = lane[8 * number : 8 * number + 18]
            np.testing.assert_array_equal(ids[:8], here[:8])
            middle = int(np.flatnonzero(ids == sep)[0])
            assert ids[-2:].tolist() == [sep, cls] and (ids == sep).sum() == 2
            segments = [0] * (middle + 1) + [1] * (20 - middle - 1) + [2]
            assert inputs["segment_ids"][row].tolist() == segments
            np.testing.assert_array_equal(ids[8:middle], here[8:middle])
            rest = ids[middle + 1 : 19]
            assert 8 < middle < 18 and len(rest) == 18 - middle
            follows += (rest == here[middle:]).all()
            elsewhere += (rest != here[middle:]).any()
            # B is in the lane, wherever it is from.
            text, part = lane.tobytes(), np.ascontiguousarray(rest).tobytes()
            starts = range(0, len(text), 4)
            starts = np.array([i // 4 for i in starts if text[i : i + len(part)] == part])
            assert len(starts)
            if (rest != here[middle:]).any():  # no token of it is in the segment too
                before, after = starts + len(rest) <= 8 * number, starts >= 8 * number + 18
                assert (before | after).any()
            place = (row % lanes) * size + 8 * number
            place = 2 * (row % lanes) * size + size - place - 18 if backward else place
            borders = stream.borders(place, place + 18) - place
            borders = 18 - borders if backward else borders
            borders = borders[(borders > 8) & (borders < 18)]
            assert middle in borders if len(borders) else middle == 13
            cuts += len(borders) > 0
            targets = inputs["target_positions"][row]
            np.testing.assert_array_equal(labels[row], ids[targets])
            assert (np.diff(targets) > 0).all() and (targets < 8).sum() == 2
            assert not np.isin(targets, [middle, 19, 20]).any()
            # The second part comes after all of the first, its special tokens as its targets do.
            assert order[:8].max() < order[8:].min()
            late = np.zeros(21, bool)
            late[[*targets, middle, 19, 20]] = True
            for part in (slice(0, 8), slice(8, 21)):
                ranks = order[part]
                assert (ranks[~late[part]] == ranks.min()).all()
                assert len({*ranks[late[part]]}) == late[part].sum()
                assert ranks[late[part]].min() > ranks.min()
    total = follows + elsewhere
    assert cuts > total / 2 and 0.4 < follows / total < 0.75
    assert (inputs["padding_mask"] == 1).all()


def test_segments_without_memory_cover_the_stream(tokens):  # noqa: F811
    objective = PermutationLM(predict_one_in=4, max_span=3)
    batches = objective.batches(large_corpus(documents=30, lowest=7), tokens, 4, 15, seed=1)
    flat = batches.stream(0).read(0, batches.tokens)
    assert batches.rows == batches.tokens // 12 and batches.predictions == 3
    begins = []
    for inputs, labels in batches.epoch(0):
        assert "continues" not in inputs and labels.shape[1] == 3
        for row, ids in enumerate(inputs["token_ids"]):
            backward = row >= len(labels) / 2
            a = ids[: np.flatnonzero(ids == tokens.token_id("<sep>"))[0]]
            text = flat[::-1] if backward else flat
            starts = [
                (len(flat) - s - 12 if backward else s)
                for s in range(len(flat) - len(a) + 1)
                if (text[s : s + len(a)] == a).all()
            ]
            begins.append({s // 12 for s in starts if s % 12 == 0})
    # Each window once, in one direction.
    assert set.union(*begins) == set(range(batches.rows)) and len(begins) == batches.rows
