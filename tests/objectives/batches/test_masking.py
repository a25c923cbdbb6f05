"""What is hidden among 100,000 hidden tokens, within three standard errors of the papers."""

import numpy as np
import pytest

from tfnlp.objectives import MaskedBatches, MaskedLM, Masking
from tfnlp.objectives.batches.masking import draw_masked_spans, span_chances
from tfnlp.text.tokenizers.tokenizer import Encoding
from tfnlp.text.tokenizers.word_starts import WordStarts

MASK, V = 4, 400
# Every third token goes on a word, so that words have one to five tokens.
BEGINS = np.arange(V) % 3 != 0
STARTS = WordStarts([b" a" if begins else b"a" for begins in BEGINS])


def texts(rows, seed=0):
    """Two texts of ordinary tokens between special ones: ids (B, 132), padding mask."""
    rng = np.random.default_rng(seed)
    first, second = 20 + np.arange(rows) % 40, 20 + np.arange(rows) // 40 % 40  # as many of each
    ids, mask = np.zeros((2, rows, 132), "int32")
    for row, (a, b) in enumerate(zip(first, second, strict=True)):
        parts = [2], rng.integers(5, V, a), [3], rng.integers(5, V, b), [3]
        ids[row, : a + b + 3], mask[row, : a + b + 3] = np.concatenate(parts), 1
    return ids, mask


def words_of(ids):
    """The places of each word in one text, told by walking along it."""
    words, inside = [], False
    for place, token in enumerate(ids):
        if token < 5:
            inside = False
        elif inside and not BEGINS[token]:
            words[-1].append(place)
        else:
            words.append([place])
            inside = True
    return words


@pytest.mark.parametrize(
    ("rows", "options"),
    [(9600, {}), (9600, {"word_starts": STARTS, "longest_span": 3})],
    ids=["tokens", "spans of words"],
)
def test_shares_are_those_of_the_papers(rows, options):
    ids, mask = texts(rows)
    masking = Masking(MASK, np.arange(5, V), **options)
    read, positions, labels = masking.mask(ids, mask, np.random.default_rng(1))
    real = labels != -100
    hidden = np.zeros(ids.shape, bool)
    hidden[np.nonzero(real)[0], positions[real]] = True
    assert hidden.sum() > 100_000 and not (hidden & (ids < 5)).any()
    np.testing.assert_array_equal(labels[real], ids[hidden])
    assert (np.diff(np.where(real, positions, 1000)) > 0)[real[:, 1:]].all()  # each once, in order
    assert not positions[~real].any()
    assert {*read[hidden]} == {MASK, *range(5, V)}
    np.testing.assert_array_equal(read[~hidden], ids[~hidden])

    # The share of tokens, each text being one draw.
    counts, sizes = hidden.sum(1), (ids >= 5).sum(1)
    beyond = counts - 0.15 * sizes
    assert abs(beyond.mean()) < 3 * beyond.std() / np.sqrt(rows)

    total = hidden.sum()
    shares = {  # one in 395 of those drawn anew is what stood there
        "masked": (0.8, (read[hidden] == MASK).sum()),
        "kept": (0.1 + 0.1 / 395, (read[hidden] == ids[hidden]).sum()),
        "others": (0.1 - 0.1 / 395, (~np.isin(read[hidden], MASK) & (read != ids)[hidden]).sum()),
    }
    for name, (share, count) in shares.items():
        assert abs(count - share * total) < 3 * np.sqrt(share * (1 - share) * total), name

    if not options:  # as many of each text as BERT's own code, at all places alike
        np.testing.assert_array_equal(counts, np.maximum(1, np.round(0.15 * sizes)))
        share, at = counts.sum() / sizes.sum(), hidden[:, 1:21].mean(0)
        assert abs(at - share).max() < 5 * np.sqrt(share * (1 - share) / rows)
    if "word_starts" in options:
        torn = sum(len({*hidden[r, w]}) > 1 for r in range(1000) for w in words_of(ids[r]))
        assert torn == 0


def test_lengths_of_spans_are_as_one_over_n():
    rows = 20_000
    room = np.full((rows, 100), 0)
    room[:, :40], room[:, 40:97] = np.arange(40, 0, -1), np.arange(57, 0, -1)
    spans = draw_masked_spans(room, 0.15, 3, np.random.default_rng(0))
    assert not spans[:, 97:].any()
    lengths = []
    for number in range(1, spans.max() + 1):
        inside = spans == number
        places = np.nonzero(inside)[1]
        size = inside.sum(1)[inside.any(1)]
        lengths.append(size)
        # One stretch each, of one text alone.
        starts = np.cumsum(size) - size
        assert (places[starts + size - 1] - places[starts] == size - 1).all()
        assert not (inside[:, 39] & inside[:, 40]).any()
    lengths = np.concatenate(lengths)
    assert lengths.sum() > 100_000
    np.testing.assert_allclose(span_chances(3), [6 / 11, 3 / 11, 2 / 11])
    for n, chance in zip((1, 2, 3), span_chances(3), strict=True):
        error = np.sqrt(chance * (1 - chance) * len(lengths))
        assert abs((lengths == n).sum() - chance * len(lengths)) < 3 * error, n
    beyond = (spans > 0).sum(1) - 0.15 * 97
    assert abs(beyond.mean()) < 3 * beyond.std() / np.sqrt(rows)


def test_spans_shrink_to_what_there_is():
    room = np.array([[1, 1, 1], [2, 1, 0], [0, 0, 0]])
    spans = draw_masked_spans(room, 4.0, 3, np.random.default_rng(0))
    assert (np.sort(spans[0]) == [1, 2, 3]).all()  # three words that stand apart
    assert (spans[1, :2] > 0).all() and not spans[1, 2] and not spans[2].any()


def test_every_text_of_words_has_a_span_however_short():
    room = np.tile([[1, 0, 0]], (200, 1))
    assert (draw_masked_spans(room, 0.15, 3, np.random.default_rng(0))[:, 0] > 0).all()


def test_texts_without_ordinary_tokens_have_nothing_to_predict():
    masking = Masking(MASK, np.arange(5, 60))
    ids = np.array([[2, 3, 0], [2, 1, 3]])
    read, positions, labels = masking.mask(ids, ids > 0, np.random.default_rng(0))
    np.testing.assert_array_equal(read, ids)
    assert positions.tolist() == [[0], [0]] and (labels == -100).all()
    assert float(MaskedLM().loss(labels, {"logits": np.zeros((2, 1, 60), "float32")})) == 0


def test_whole_words_are_masked_together(tokenizer):
    texts = ["unbelievable dull films a finely film", "films 지루하다 unbelievable"] * 200
    encodings = tokenizer.encode(texts)
    masking = Masking.from_tokenizer(tokenizer, share=0.3, whole_words=True)
    batch = encodings.padded(range(len(texts)), tokenizer.pad_token_id)
    ids = batch["token_ids"]
    _, positions, labels = masking.mask(ids, batch["padding_mask"], np.random.default_rng(0))
    words = [[[1, 2, 3], [4], [5, 6], [7], [8, 9], [10]], [[1, 2], [3, 4], [5, 6, 7]]]
    tokens = [tokenizer.tokens(text) for text in texts[:2]]
    assert [len(t) for t in tokens] == [10, 7]
    hidden = 0
    for row, text in enumerate(words * 200):
        found = set(positions[row, labels[row] != -100])
        chosen = [word for word in text if found & {*word}]
        assert found == {i for word in chosen for i in word}
        assert len(chosen) == round(0.3 * len(text))
        hidden += found >= {5, 6, 7}
    assert 0 < hidden < 400


def test_batches_of_one_length_have_few_numbers_of_positions():
    rng = np.random.default_rng(0)
    texts = [rng.integers(5, 30, rng.integers(3, 40)).tolist() for _ in range(40)]
    encodings = [Encoding(ids, [0] * len(ids), truncated=False) for ids in texts]
    masking = Masking(MASK, np.arange(5, 30), share=0.4)
    varied, fixed = (
        MaskedBatches(encodings, 8, masking, shuffle=True, fixed_length=length)
        for length in (None, 40)
    )
    shapes = [{labels.shape for _, labels in b.epoch()} for b in (varied, fixed)]
    assert len(shapes[0]) > 2 and shapes[1] == {(8, 16)}
    for inputs, labels in fixed.epoch():
        assert inputs["token_ids"].shape == (8, 40)
        real = labels != -100
        assert (inputs["masked_positions"][~real] == 0).all() and real.any(1).all()
