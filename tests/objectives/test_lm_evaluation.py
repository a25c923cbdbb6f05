"""Perplexities and accuracies against direct computations, and of models that are known."""

import json
import math

import numpy as np
import pytest
import tensorflow as tf

from tfnlp.models import BertConfig, Gpt2Config, RobertaConfig, TransformerXLConfig, build_model
from tfnlp.objectives.batches.masking import MaskedBatches, Masking
from tfnlp.objectives.evaluation_settings import LmEvaluation
from tfnlp.objectives.lm_evaluation import (
    TextStream,
    check_evaluation,
    evaluate_causal_lm,
    evaluate_masked_lm,
    figures_table,
    masked_accuracy,
    pseudo_perplexity,
    sliding_windows,
)
from tfnlp.text.tokenizers.tokenizer import Tokenizer
from tfnlp.text.tokenizers.tokenizer_loading import train_tokenizer
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
    (found,) = evaluate_causal_lm(
        model, characters, TEXTS, LmEvaluation(stride=stride, batch_size=3)
    )
    assert found["tokens"] == len(ids) - 1 and found["texts"] == 5
    assert found["cross_entropy"] == pytest.approx(-total / (len(ids) - 1), abs=1e-5)
    assert found["perplexity"] == pytest.approx(math.exp(found["cross_entropy"]))
    bits = -total / math.log(2) / stream.characters
    assert found["bits_per_character"] == pytest.approx(bits, abs=1e-5)


def test_memory_reads_the_whole_stream(characters, stream):
    sizes = SIZES | {"vocabulary_size": 257, "same_length": False}
    config = TransformerXLConfig(**sizes, cutoffs=(80, 120), div_value=2, memory_length=100)
    model = build_model(config, "causal_lm")
    ids = stream.token_ids
    whole = model(inputs_of(ids[:-1]))["logits"][0].numpy()
    expected = -np.take_along_axis(whole, ids[1:, None], 1).mean()
    given = (model, characters, TEXTS)
    found = evaluate_causal_lm(*given, LmEvaluation(7, None, (5, 100), batch_size=1))
    assert [f["memory_length"] for f in found] == [5, 100]
    some, all_ = (f["cross_entropy"] for f in found)
    assert all_ == pytest.approx(expected, abs=1e-5) and abs(some - expected) > 1e-3
    # Its own memory where none is named; lanes begin without one.
    (found,) = evaluate_causal_lm(*given, LmEvaluation(7, batch_size=4))
    assert found["memory_length"] == 100
    size = math.ceil((len(ids) - 1) / 4)
    total = 0.0
    for start in range(0, len(ids) - 1, size):
        lane = ids[start : start + size + 1]
        logits = model(inputs_of(lane[:-1]))["logits"][0].numpy()
        total += np.take_along_axis(logits, lane[1:, None], 1).sum()
    assert found["cross_entropy"] == pytest.approx(-total / (len(ids) - 1), abs=1e-5)


def test_unsuitable_models_and_options_are_refused(characters):
    gpt2 = Gpt2Config(vocabulary_size=257, max_length=10, **SIZES)
    xl = TransformerXLConfig(**SIZES, vocabulary_size=257, cutoffs=(), memory_length=8)
    for config, settings, word in (
        (gpt2, LmEvaluation(memory_lengths=(4,)), "gpt2"),
        (gpt2, LmEvaluation(11), "max_length=11"),
        (xl, LmEvaluation(stride=3), "stride=3"),
    ):
        model = build_model(config, "causal_lm")
        with pytest.raises(InputError, match=word):
            evaluate_causal_lm(model, characters, TEXTS, settings)
    for head, settings, word in (
        (None, LmEvaluation(), "head None"),
        ("masked_lm", LmEvaluation(stride=3), "stride=3"),
    ):
        with pytest.raises(InputError, match=word):
            check_evaluation(head, settings)
    with pytest.raises(InputError, match="memory_lengths=-1"):
        LmEvaluation(memory_lengths=(4, -1))


@pytest.fixture(scope="module")
def bert():
    tokenizer = train_tokenizer(TEXTS, "wordpiece", 60)[0]
    size = tokenizer.vocabulary_size
    config = BertConfig(vocabulary_size=size, max_length=12, **SIZES)
    return build_model(config, "masked_lm"), tokenizer


def test_pseudo_perplexity_masks_each_token_in_turn(bert):
    model, tokenizer = bert
    texts = [*TEXTS, "the Ω sat"]
    total, tokens = 0.0, 0
    for row in tokenizer.encode_text_windows(texts, 12):
        for place, token in enumerate(row.token_ids):
            if token in tokenizer.special_token_ids:  # [UNK] is one of them
                continue
            ids = list(row.token_ids)
            ids[place] = tokenizer.mask_token_id
            log_probs = tf.nn.log_softmax(model(inputs_of(ids))["logits"][0, place])
            total, tokens = total + float(log_probs[token]), tokens + 1
    found = pseudo_perplexity(model, tokenizer, texts, batch_size=7)
    assert found["tokens"] == tokens
    assert found["pseudo_perplexity"] == pytest.approx(math.exp(-total / tokens), rel=1e-4)
    with pytest.raises(InputError, match="The texts have no token that could be masked; give"):
        pseudo_perplexity(model, tokenizer, ["", "Ω"])


def test_special_tokens_spelt_in_a_text_are_text():
    """As in a corpus: what is written <mask> hides nothing."""
    text = "the <mask> sat</s>"
    tokenizer = train_tokenizer([text], "bpe", 270, "roberta")[0]
    sizes = SIZES | {"vocabulary_size": tokenizer.vocabulary_size}
    model = build_model(RobertaConfig(max_length=40, **sizes), "masked_lm")
    pieces = tokenizer.encode([text], literal=True)[0].token_ids[1:-1]
    assert tokenizer.decode(pieces) == text
    found = pseudo_perplexity(model, tokenizer, [text])
    assert found["tokens"] == len(pieces)


def test_masked_accuracy_counts_hidden_tokens(bert):
    model, tokenizer = bert
    given = (tokenizer, TEXTS * 20)
    whole = masked_accuracy(model, *given, share=0.5, batch_size=32, seed=1)
    assert whole["masked_tokens"] > 150 and whole["masked_perplexity"] > 1
    assert whole == masked_accuracy(model, *given, share=0.5, batch_size=32, seed=1)
    weights = model.get_weights()
    without_weights(model)
    letter = tokenizer.encode(["a"])[0].token_ids[1]
    bias = model.get_layer("lm_bias").bias
    bias.assign(np.eye(bias.shape[0], dtype="float32")[letter] * 1e-3)
    found = masked_accuracy(model, *given, share=0.5, batch_size=32, seed=1)
    model.set_weights(weights)
    assert found["masked_tokens"] == whole["masked_tokens"]
    assert found["masked_perplexity"] == pytest.approx(bias.shape[0], rel=1e-3)
    # "a" alone is found, wherever it is hidden.
    batches = MaskedBatches(
        tokenizer.encode_text_windows(TEXTS * 20, 12),
        32,
        Masking.from_tokenizer(tokenizer, 0.5),
        seed=1,
        pad_token_id=tokenizer.pad_token_id,
    )
    labels = np.concatenate([labels[labels != -100] for _, labels in batches.epoch()])
    assert found["masked_accuracy"] == pytest.approx((labels == letter).mean())
    settings = LmEvaluation(masked_share=0.5, pseudo_perplexity=False, batch_size=32, seed=1)
    (row,) = evaluate_masked_lm(model, *given, settings)
    assert row == {"texts": 100} | whole


def test_a_table_has_a_line_for_each_memory():
    rows = [{"memory_length": m, "perplexity": 3 / (m + 1)} for m in (0, 16)]
    assert figures_table(rows) == (
        "memory_length  perplexity\n            0      3.0000\n           16      0.1765"
    )
