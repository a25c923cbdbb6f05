"""Pseudo-perplexity and masked accuracy against direct computations."""

import math

import numpy as np
import pytest
import tensorflow as tf
from tfnlp.objectives.masked_lm_evaluation import (
    evaluate_masked_lm,
    masked_accuracy,
    pseudo_perplexity,
)

from tfnlp.models import BertConfig, RobertaConfig, build_model
from tfnlp.objectives.masking import MaskedBatches, Masking
from tfnlp.text.tokenizer_loading import train_tokenizer
from tfnlp.utils.errors import InputError

TEXTS = ["a cat sat on the mat", "the dog", "", "a dog ran to the cat and sat", "on"]


SIZES = {"num_layers": 2, "num_heads": 2, "hidden_dim": 16, "intermediate_dim": 32}


SIZES["initializer_range"] = 0.4


def without_weights(model):
    for weight in model.weights:
        weight.assign(0 * weight)
    return model


def inputs_of(ids):
    ids = np.asarray([ids], "int32")
    return {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": 0 * ids + 1}


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
    (row,) = evaluate_masked_lm(model, *given, None, 0.5, False, 32, 1)
    assert row == {"texts": 100} | whole
