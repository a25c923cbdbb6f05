"""Translation: pairs as ids, and pairs that are too long."""

import types

import numpy as np
import pytest

from tfnlp.tasks import ParallelTexts, Translation
from tfnlp.text import train_tokenizer
from tfnlp.utils.errors import InputError

CONFIG = types.SimpleNamespace(pad_token_id=0, start_token_id=0, end_token_id=3)


def test_texts_become_ids_with_an_end_token_alone(tokenizer):
    # [PAD] 0, [UNK] 1, [CLS] 2, [SEP] 3, [MASK] 4, a 5, fine 6, film 7, dull 8
    texts = ParallelTexts(["a fine film", "dull"], ["film", "a film"])
    (batch,) = Translation().batches(texts, tokenizer, CONFIG, 14, 4).epoch()
    inputs, labels = batch  # the pair of the shorter texts first
    np.testing.assert_array_equal(inputs["encoder_token_ids"], [[8, 3, 0, 0], [5, 6, 7, 3]])
    np.testing.assert_array_equal(inputs["encoder_padding_mask"], [[1, 1, 0, 0], [1, 1, 1, 1]])
    np.testing.assert_array_equal(inputs["decoder_token_ids"], [[0, 5, 7], [0, 7, 0]])
    np.testing.assert_array_equal(labels, [[5, 7, 3], [7, 3, -100]])
    assert len(Translation().batches(texts, tokenizer, CONFIG, 13, 4)) == 2


def test_pairs_that_are_too_long_are_skipped_or_cut(tokenizer, caplog):
    places = [f"x.tsv, line {i}" for i in range(2, 6)]
    sources, targets = ["a", "a fine film", "dull", "film"], ["film", "a", "a fine film", "dull"]
    texts = ParallelTexts(sources, targets, places)
    batches = Translation(too_long="skip").batches(texts, tokenizer, CONFIG, 14, 3)
    assert [batches.sources[i].token_ids for i in range(2)] == [[5, 3], [7, 3]]
    assert [batches.targets[i].token_ids for i in range(2)] == [[7, 3], [8, 3]]
    assert "max_length=3 or max_tokens=14, x.tsv, line 3 the first; they were sk" in caplog.text
    batches = Translation(too_long="cut").batches(texts, tokenizer, CONFIG, 14, 3)
    # A source that is cut ends, a target does not.
    assert [e.token_ids for e in batches.sources] == [[5, 3], [5, 6, 3], [8, 3], [7, 3]]
    assert [e.token_ids for e in batches.targets] == [[7, 3], [5, 3], [5, 6, 7], [8, 3]]
    assert "2 of 4 pairs are longer than max_length=3, x.tsv, line 3 the first" in caplog.text
    assert len(Translation(too_long="skip").batches(texts, tokenizer, CONFIG, 5, 4).sources) == 2
    # The longest pairs have six tokens, the most that are allowed.
    assert len(Translation(too_long="skip").batches(texts, tokenizer, CONFIG, 6, 4).sources) == 4
    for too_long, tokens, length, message in (
        ("error", 14, 3, "line 3: the pair has 4 and 2 tokens, .*max_length=3 or"),
        ("error", 5, 4, "line 3: the pair has 4 and 2 tokens, .* or max_tokens=5"),
        ("skip", 14, 1, "line 2: the pair has 2 and 2 tokens, .*max_length=1 or"),
        ("cut", 4, 3, "line 3: the pair has 3 and 2 tokens, .* or max_tokens=4"),
    ):
        with pytest.raises(InputError, match=message):
            Translation(too_long=too_long).batches(texts, tokenizer, CONFIG, tokens, length)
    for wrong in ({"too_long": "drop"}, {"label_smoothing": 1.0}):
        with pytest.raises(InputError, match="|".join(wrong)):
            Translation(**wrong)


def test_source_and_target_tokenizers_have_separate_end_tokens(tokenizer):
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
