"""Pairs of texts: reading, ids, and batches by tokens."""

import gzip
import itertools
import types

import numpy as np
import pytest

from tfnlp.tasks import ParallelTexts, Translation, read_parallel_texts
from tfnlp.tasks.translation_batches import TranslationBatches
from tfnlp.text import train_tokenizer
from tfnlp.text.encoding import EncodingsBuilder
from tfnlp.utils.errors import InputError

CONFIG = types.SimpleNamespace(pad_token_id=0, start_token_id=0, end_token_id=3)
PAIRS = [("a dog", "ein Hund"), ("two men .", "zwei Männer ."), ("영화", "ein Film")]


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


def test_a_table_and_two_files_hold_the_same_pairs(tmp_path):
    table = "de\tn\ten\n" + "".join(f"{b}\t1\t{a}\n" for a, b in PAIRS)
    (tmp_path / "pairs.tsv").write_text(table, "utf-8")
    with gzip.open(tmp_path / "pairs.tsv.gz", "wt", encoding="utf-8") as file:
        file.write(table)
    for name, side in (("source", 0), ("target", 1)):
        (tmp_path / name).write_text("".join(f"{pair[side]}\n" for pair in PAIRS), "utf-8")
    for paths in ("pairs.tsv", "pairs.tsv.gz", ("source", "target")):
        given = tmp_path / paths if isinstance(paths, str) else [tmp_path / p for p in paths]
        found = read_parallel_texts(given, "en", "de")
        assert [*zip(found.sources, found.targets, strict=True)] == PAIRS
    assert found.place(2) == f"{tmp_path / 'source'}, line 3"


def test_pairs_that_are_none_are_refused_by_file_and_line(tmp_path):
    table, source, target = tmp_path / "x.tsv", tmp_path / "x.en", tmp_path / "x.de"
    table.write_text("en\tde\na\tb\na\t \n")
    with pytest.raises(InputError, match=r"x\.tsv, line 3: 'de' is empty; give both"):
        read_parallel_texts([table], "en", "de")
    source.write_text("a\n\nc\n")
    target.write_text("a\nb\nc\nd\n")
    with pytest.raises(InputError, match=r"x\.en has 3 lines and .*x\.de 4; each line"):
        read_parallel_texts([source, target])
    target.write_text("a\nb\nc\n")
    with pytest.raises(InputError, match=r"x\.en, line 2: the source is empty"):
        read_parallel_texts([source, target])
    with pytest.raises(InputError, match="not in 3"):
        read_parallel_texts([source] * 3)


def test_texts_become_ids_without_a_frame_and_with_an_end(tokenizer):
    # [PAD] 0, [UNK] 1, [CLS] 2, [SEP] 3, [MASK] 4, a 5, fine 6, film 7, dull 8
    texts = ParallelTexts(["a fine film", "dull"], ["film", "a film"])
    (batch,) = Translation().batches(texts, tokenizer, CONFIG, 14, 4).epoch()
    inputs, labels = batch  # the pair of the shorter texts first
    np.testing.assert_array_equal(inputs["encoder_token_ids"], [[8, 3, 0, 0], [5, 6, 7, 3]])
    np.testing.assert_array_equal(inputs["encoder_padding_mask"], [[1, 1, 0, 0], [1, 1, 1, 1]])
    np.testing.assert_array_equal(inputs["decoder_token_ids"], [[0, 5, 7], [0, 7, 0]])
    np.testing.assert_array_equal(labels, [[5, 7, 3], [7, 3, -100]])
    assert len(Translation().batches(texts, tokenizer, CONFIG, 13, 4)) == 2
    texts = ParallelTexts(texts.sources, texts.targets, ["x.tsv, line 2", "x.tsv, line 3"])
    with pytest.raises(InputError, match=r"line 2: the source has 4 tokens, .*max_length=3 at"):
        Translation().batches(texts, tokenizer, CONFIG, 14, 3)
    with pytest.raises(InputError, match=r"line 2: the pair has 6 tokens, .*max_tokens=5 at"):
        Translation().batches(texts, tokenizer, CONFIG, 5, 4)


def test_pairs_that_are_too_long_are_skipped_or_cut(tokenizer, caplog):
    places = [f"x.tsv, line {i}" for i in range(2, 6)]
    texts = ParallelTexts(
        ["a", "a fine film", "dull", "film"], ["film", "a", "a fine film", "dull"], places
    )
    batches = Translation(too_long="skip").batches(texts, tokenizer, CONFIG, 14, 3)
    assert [batches.sources[i].token_ids for i in range(2)] == [[5, 3], [7, 3]]
    assert [batches.targets[i].token_ids for i in range(2)] == [[7, 3], [8, 3]]
    assert (
        "2 of 4 pairs are longer than max_length=3 or max_tokens=14, x.tsv, line 3 the first; "
        "they were skipped." in caplog.text
    )
    batches = Translation(too_long="cut").batches(texts, tokenizer, CONFIG, 14, 3)
    # A source that is cut ends, a target does not.
    assert [e.token_ids for e in batches.sources] == [[5, 3], [5, 6, 3], [8, 3], [7, 3]]
    assert [e.token_ids for e in batches.targets] == [[7, 3], [5, 3], [5, 6, 7], [8, 3]]
    assert (
        "2 of 4 pairs are longer than max_length=3, x.tsv, line 3 the first; they were cut."
        in caplog.text
    )
    assert len(Translation(too_long="skip").batches(texts, tokenizer, CONFIG, 5, 4).sources) == 2
    # The longest pairs have six tokens, the most that are allowed.
    assert len(Translation(too_long="skip").batches(texts, tokenizer, CONFIG, 6, 4).sources) == 4
    with pytest.raises(
        InputError, match=r"line 2: this pair and all others are longer than max_l"
    ):
        Translation(too_long="skip").batches(texts, tokenizer, CONFIG, 14, 1)
    with pytest.raises(InputError, match=r"line 3: the pair has 5 tokens, .*max_tokens=4 at"):
        Translation(too_long="cut").batches(texts, tokenizer, CONFIG, 4, 3)
    with pytest.raises(InputError, match="too_long=drop is unknown; use one of error, cut, skip"):
        Translation(too_long="drop")


def test_two_tokenizers_have_each_its_own_end(tokenizer):
    target = train_tokenizer(["ein film"] * 20, "unigram", 40, "marian")[0]
    texts = ParallelTexts(["a fine film"], ["ein film"])
    config = types.SimpleNamespace(pad_token_id=2, start_token_id=2, end_token_id=0)
    pair = Wrapped(tokenizer, target)  # a tokenizer with its target, as a Marian's
    ((inputs, labels),) = Translation().batches(texts, pair, config, 40, 20).epoch()
    assert inputs["encoder_token_ids"].tolist() == [[5, 6, 7, 3]]
    assert labels.tolist() == [[*target.encode(["ein film"])[0].token_ids]]
    assert labels[0, -1] == 0
    with pytest.raises(InputError, match="The tokenizer of the sources lacks an end token"):
        Translation().batches(texts, Wrapped(tokenizer, target, ends=()), config, 40, 20)


class Wrapped:
    """A tokenizer and that of its targets, with some end tokens alone."""

    def __init__(self, tokenizer, target, ends=("[SEP]",)):
        self.encode_closed, self.target, self.ends = tokenizer.encode_closed, target, ends
        self.found = tokenizer.token_id

    def token_id(self, token):
        return self.found(token) if token in self.ends else None


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
    others = [
        random_batches(seed=1),
        random_batches(shuffle=False),
        random_batches(max_tokens=121),
    ]
    assert len({batches.fingerprint(), *(other.fingerprint() for other in others)}) == 4
    still = random_batches(shuffle=False)
    assert [list(x) for x in still.batch_indices(0)] == [list(x) for x in still.batch_indices(1)]


def test_label_smoothing_out_of_range_is_refused():
    with pytest.raises(InputError, match="label_smoothing=1"):
        Translation(label_smoothing=1.0)
