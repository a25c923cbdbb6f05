"""Permutation language modelling: predictions see what the factorisation order allows."""

import numpy as np
import pytest

from tests.objectives.batches.test_token_stream import large_corpus
from tfnlp.models import Gpt2Config, XLNetConfig, build_model
from tfnlp.objectives import PermutationLM
from tfnlp.text.tokenizers.tokenizer_loading import train_tokenizer
from tfnlp.utils.errors import InputError

TEXTS = ["a cat sat on the mat", "the dog ran to a cat", "a b c d e"] * 20


SIZES = {"vocabulary_size": 60, "num_layers": 2, "num_heads": 2, "hidden_dim": 16}
SIZES |= {"intermediate_dim": 32, "dropout": 0.0, "attention_dropout": 0.0}


XLNET = XLNetConfig(**SIZES, initializer_range=0.4, memory_length=10, reuse_length=8)


MEMORY = PermutationLM(reuse_length=8, predict_one_in=3, max_span=2)


@pytest.fixture(scope="module")
def tokens():
    return train_tokenizer(TEXTS, "unigram", 60, "xlnet")[0]


def test_a_target_is_not_seen_by_its_prediction_nor_by_those_before_it(tokens, no_graphs):
    trained = MEMORY.trained(build_model(XLNET, "permutation_lm", memory=True), batch_size=4)
    batches = MEMORY.batches(large_corpus(documents=30, lowest=7), tokens, 4, 21)
    (first, _), (inputs, labels), *_ = batches.epoch(0)
    lanes = trained.training_memory

    def run(inputs):
        trained(first, training=True)  # begins anew
        return np.array(trained(inputs, training=True)["logits"]), np.array(lanes.states)

    logits, memory = run(inputs)
    loss = MEMORY.losses(labels, {"logits": logits})["permutation_lm_loss"]
    shifted = logits - logits.max(-1, keepdims=True)
    log_probs = shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))
    by_hand = -np.take_along_axis(log_probs, labels[..., None], -1).mean()
    assert float(loss) == pytest.approx(by_hand, rel=1e-5)
    ranks = np.take_along_axis(inputs["permutation_order"], inputs["target_positions"], 1)
    for p in range(labels.shape[1]):
        ids = inputs["token_ids"].copy()
        for row, place in enumerate(inputs["target_positions"][:, p]):
            ids[row, place] = (ids[row, place] + 11) % 50 + 7
        changed, new_memory = run(inputs | {"token_ids": ids})
        moved = (changed != logits).any(-1)  # (B, P)
        np.testing.assert_array_equal(moved, ranks > ranks[:, p : p + 1])
        # What the next segment reads again is not in its memory.
        places = inputs["target_positions"][:, p]
        in_memory = (new_memory != memory).any((1, 2, 3))
        np.testing.assert_array_equal(in_memory, places < 8)
    # All see the tokens that are no targets, and the memory.
    other = inputs["token_ids"].copy()
    free = [np.setdiff1d(np.arange(8), row)[0] for row in inputs["target_positions"]]
    other[np.arange(4), free] = 7
    assert (run(inputs | {"token_ids": other})[0] != logits).any(-1).all()
    alone = np.array(trained(inputs | {"continues": 0 * inputs["continues"]})["logits"])
    assert (alone != logits).any(-1).all()


def test_the_memory_is_of_the_reused_positions(tokens, no_graphs):
    model = build_model(XLNET, "permutation_lm", memory=True)
    trained = MEMORY.trained(model, batch_size=4)
    batches = MEMORY.batches(large_corpus(documents=30, lowest=7), tokens, 4, 21)
    memory = np.zeros((4, 2, 0, 16), "float32")
    for number, (inputs, _) in zip(range(3), batches.epoch(0), strict=False):
        found = trained(inputs, training=True)["logits"]
        given = {
            k: v for k, v in inputs.items() if k not in ("target_positions", "continues", "lanes")
        }
        mapping = np.eye(21, dtype="int32")[inputs["target_positions"]]
        expected = model(given | {"target_mapping": mapping, "memory": memory})
        np.testing.assert_array_equal(found, expected["logits"])
        memory = expected["memory"].numpy()
        assert memory.shape[2] == (8, 10, 10)[number]
        assert (np.array(trained.training_memory.filled) == memory.shape[2]).all()
        kept = np.array(trained.training_memory.states)[:, :, 10 - memory.shape[2] :]
        np.testing.assert_array_equal(kept, memory)
        if number == 0:  # the first block's inputs are the embeddings
            table = model.get_layer("embeddings").token_table.numpy()
            np.testing.assert_array_equal(memory[:, 0], table[inputs["token_ids"][:, :8]])


def test_bad_arguments_are_refused(tokens):
    corpus = large_corpus(documents=30, lowest=7)
    for name in ("predict_one_in", "reuse_length", "max_span"):
        with pytest.raises(InputError, match=f"{name}=0"):
            PermutationLM(**{name: 0})
    for given, size, length, words in (
        ({"reuse_length": 20}, 4, 21, "23 other tokens"),
        ({"predict_one_in": 11}, 4, 13, "predict_one_in=11 .* 10"),
        ({"max_span": 9}, 4, 11, "max_span=9 .* 8"),
        ({"reuse_length": 8}, 4, 2000, "3994"),
        ({}, 4, 2000, "1997"),
        ({"reuse_length": 8}, 3, 21, "batch_size=3"),
    ):
        with pytest.raises(InputError, match=words):
            PermutationLM(**given).batches(corpus, tokens, size, length)
    for objective, config, word in (
        (MEMORY, Gpt2Config(), "'gpt2'"),
        (PermutationLM(4), XLNET, "reuse_length=4"),
        (MEMORY, XLNetConfig(**SIZES, reuse_length=8), "reuse_length=8"),
    ):
        with pytest.raises(InputError, match=word):
            objective.check(config, tokens)
    MEMORY.check(XLNET, tokens)
