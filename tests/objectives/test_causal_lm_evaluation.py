"""Perplexities against direct computations, and of models that are known."""

import json
import math

import numpy as np
import pytest
import tensorflow as tf
from tfnlp.objectives.causal_lm_evaluation import TextStream, evaluate_causal_lm, sliding_windows

from tfnlp.models import Gpt2Config, TransformerXLConfig, build_model
from tfnlp.text.tokenizer import Tokenizer
from tfnlp.text.tokenizer_loading import train_tokenizer
from tfnlp.utils.errors import InputError

TEXTS = ["a cat sat on the mat", "the dog", "", "a dog ran to the cat and sat", "on"]


SIZES = {"num_layers": 2, "num_heads": 2, "hidden_dim": 16, "intermediate_dim": 32}


SIZES["initializer_range"] = 0.4


@pytest.fixture(scope="module")
def characters():
    """Byte-level BPE without merges, whose tokens are bytes."""
    return train_tokenizer(TEXTS, "bpe", 257, "gpt2")[0]


@pytest.fixture(scope="module")
def stream(characters):
    return TextStream.from_texts(TEXTS, characters)


def without_weights(model):
    for weight in model.weights:
        weight.assign(0 * weight)
    return model


def inputs_of(ids):
    ids = np.asarray([ids], "int32")
    return {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": 0 * ids + 1}


def test_a_stream_of_texts(stream, characters):
    flat = "|" + "".join(f"{text}|" for text in TEXTS)
    ids = [0 if c == "|" else characters.token_id("Ġ" if c == " " else c) for c in flat]
    assert stream.token_ids.tolist() == ids
    assert stream.characters == len(flat) - 1 and stream.texts == 5
    with pytest.raises(InputError, match="The texts have no token that comes after another"):
        TextStream.from_texts([], characters)
    # A frame is left out: WordPiece's end stands between.
    wordpiece = train_tokenizer(TEXTS, "wordpiece", 60)[0]
    whole = wordpiece.encode(TEXTS[:2])
    sep = wordpiece.token_id("[SEP]")
    expected = [sep, *whole[0].token_ids[1:], *whole[1].token_ids[1:]]
    assert TextStream.from_texts(TEXTS[:2], wordpiece).token_ids.tolist() == expected
    # "Zz" is unknown: 1 of 9 tokens, 3 of which are ends.
    assert TextStream.from_texts(["a cat sat", "the Zz dog"], wordpiece).unknown_share == 1 / 9
    assert stream.unknown_share == 0
    # A token that is both is an end.
    stored = json.loads(characters.to_json())
    stored["model"]["unk_token"] = "<|endoftext|>"
    both = Tokenizer.from_json(json.dumps(stored), "<|endoftext|>")
    assert both.unknown_token_id == 0
    assert TextStream.from_texts(TEXTS, both).unknown_share == 0


@pytest.mark.parametrize(
    ("length", "window", "stride"), [(10, 4, 4), (11, 4, 2), (9, 5, 1), (3, 8, 8)]
)
def test_windows_score_each_position_once_with_context(length, window, stride):
    found = sliding_windows(length, window, stride)
    scored = [i for _, end, first in found for i in range(first, end)]
    assert scored == list(range(length))
    for number, (start, end, first) in enumerate(found):
        assert start == number * stride and end == min(start + window, length)
        # All the context that there is room for.
        assert first == 0 if number == 0 else first - start >= window - stride
    assert sliding_windows(8, 4, 2).tolist() == [[0, 4, 0], [2, 6, 4], [4, 8, 6]]
    with pytest.raises(InputError, match="stride=5 must be at least 1 and at most the 4 tokens"):
        sliding_windows(8, 4, 5)


@pytest.mark.parametrize("stride", [None, 3])
def test_perplexity_is_that_of_each_token_by_itself(stride, characters, stream):
    config = Gpt2Config(vocabulary_size=257, max_length=10, **SIZES)
    model = build_model(config, "causal_lm")
    ids, total = stream.token_ids, 0.0
    for start, end, first in sliding_windows(len(ids) - 1, 10, stride or 10):
        log_probs = tf.nn.log_softmax(model(inputs_of(ids[start:end]))["logits"])[0].numpy()
        total += sum(log_probs[i - start, ids[i + 1]] for i in range(first, end))
    (found,) = evaluate_causal_lm(model, characters, TEXTS, stride=stride, batch_size=3)
    assert found["tokens"] == len(ids) - 1 and found["texts"] == 5
    assert found["cross_entropy"] == pytest.approx(-total / (len(ids) - 1), abs=1e-5)
    assert found["perplexity"] == pytest.approx(math.exp(found["cross_entropy"]))
    bits = -total / math.log(2) / stream.characters
    assert found["bits_per_character"] == pytest.approx(bits, abs=1e-5)


def test_the_perplexity_of_a_uniform_model_is_the_vocabulary_size(characters):
    sizes = SIZES | {"vocabulary_size": 257}
    for config in (Gpt2Config(**sizes), TransformerXLConfig(**sizes, cutoffs=(), memory_length=8)):
        model = without_weights(build_model(config, "causal_lm"))
        for found in evaluate_causal_lm(model, characters, TEXTS, max_length=16):
            assert found["perplexity"] == pytest.approx(257, rel=1e-4)
            assert found["tokens"] == found["characters"] == sum(map(len, TEXTS)) + len(TEXTS)
            assert found["bits_per_character"] == pytest.approx(math.log2(257), rel=1e-5)


def test_memory_reads_the_whole_stream(characters, stream):
    sizes = SIZES | {"vocabulary_size": 257, "same_length": False}
    config = TransformerXLConfig(**sizes, cutoffs=(80, 120), div_value=2, memory_length=100)
    model = build_model(config, "causal_lm")
    ids = stream.token_ids
    whole = model(inputs_of(ids[:-1]))["logits"][0].numpy()
    expected = -np.take_along_axis(whole, ids[1:, None], 1).mean()
    given = (model, characters, TEXTS)
    found = evaluate_causal_lm(*given, ["5", "100"], max_length=7, batch_size=1)
    assert [f["memory_length"] for f in found] == [5, 100]
    some, all_ = (f["cross_entropy"] for f in found)
    assert all_ == pytest.approx(expected, abs=1e-5) and abs(some - expected) > 1e-3
    # Its own memory where none is named; lanes begin without one.
    (found,) = evaluate_causal_lm(*given, max_length=7, batch_size=4)
    assert found["memory_length"] == 100
    size = math.ceil((len(ids) - 1) / 4)
    total = 0.0
    for start in range(0, len(ids) - 1, size):
        lane = ids[start : start + size + 1]
        logits = model(inputs_of(lane[:-1]))["logits"][0].numpy()
        total += np.take_along_axis(logits, lane[1:, None], 1).sum()
    assert found["cross_entropy"] == pytest.approx(-total / (len(ids) - 1), abs=1e-5)


def test_unsuitable_models_and_options_are_refused(characters):
    gpt2 = build_model(Gpt2Config(vocabulary_size=257, max_length=10, **SIZES), "causal_lm")
    with pytest.raises(InputError, match="memory_lengths=4 does not fit the family Gpt2, which"):
        evaluate_causal_lm(gpt2, characters, TEXTS, ["4"])
    with pytest.raises(InputError, match="max_length=11 is above the model's 10 positions"):
        evaluate_causal_lm(gpt2, characters, TEXTS, max_length=11)
    config = TransformerXLConfig(**SIZES, vocabulary_size=257, cutoffs=(), memory_length=8)
    with pytest.raises(InputError, match="stride=3 has no effect with a memory, as no token"):
        evaluate_causal_lm(build_model(config, "causal_lm"), characters, TEXTS, stride=3)
