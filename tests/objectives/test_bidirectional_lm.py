"""Bidirectional language modelling: what is read, predicted and learned."""

import numpy as np
import pytest
import tensorflow as tf

from tfnlp.models import ElmoConfig, RecurrentConfig, build_model
from tfnlp.objectives import BidirectionalLM, corpus_of
from tfnlp.text import train_tokenizer
from tfnlp.utils.errors import InputError

TEXTS = [
    "a fine film. it was good .",
    "정말 재미있는 영화예요 . 이 영화",
    "a dull one",
    "rare words",
]


@pytest.fixture(scope="module")
def tokenizer():
    return train_tokenizer(TEXTS, "words", 40)[0]


@pytest.fixture(scope="module")
def batches(tokenizer):
    corpus = corpus_of(TEXTS, tokenizer)
    return BidirectionalLM().batches(corpus, tokenizer, 4, 12, shuffle=False)


def test_batches_are_words_with_their_characters(tokenizer, batches):
    inputs, labels = next(batches.epoch())
    read = tokenizer(sorted(TEXTS, key=lambda text: len(tokenizer.tokens(text))))
    for name, value in read.items():
        np.testing.assert_array_equal(inputs[name], value, err_msg=name)
    np.testing.assert_array_equal(labels, np.where(read["padding_mask"], read["token_ids"], -100))
    tf.nest.assert_same_structure(batches.signature(), (inputs, labels))


def test_losses_are_those_of_a_loop_and_rare_words_are_unknown(batches):
    _, labels = next(batches.epoch())
    rng, shape = np.random.default_rng(0), (*labels.shape, 10)
    forward, backward = (rng.normal(size=shape).astype("float32") for _ in range(2))
    sums = {"forward": [], "backward": []}
    for row, words in enumerate(labels):
        words = [word if word < 10 else 1 for word in words if word >= 0]
        for k in range(len(words) - 1):
            for name, logits, label in (
                ("forward", forward[row, k], words[k + 1]),
                ("backward", backward[row, k + 1], words[k]),
            ):
                sums[name].append(np.log(np.exp(logits).sum()) - logits[label])
    outputs = {"forward_logits": forward, "backward_logits": backward}
    losses = BidirectionalLM().losses(labels, outputs)
    scores = BidirectionalLM().scores(labels, outputs)
    for name, values in sums.items():
        np.testing.assert_allclose(losses[f"{name}_loss"], np.mean(values), rtol=1e-5)
        total, count = scores[f"{name}_log_likelihood"]
        assert int(count) == len(values)
        np.testing.assert_allclose(-total, np.sum(values), rtol=1e-5)
    assert BidirectionalLM().loss_weights == {"forward_loss": 0.5, "backward_loss": 0.5}


def test_neither_direction_reads_the_word_that_it_predicts(tokenizer):
    config = ElmoConfig(
        tokenizer.vocabulary_size, 12, hidden_dim=8, intermediate_dim=10, filters=(3, 4)
    )
    model = build_model(config, "bidirectional_lm")
    model.set_weights([w + 0.3 * np.random.normal(size=w.shape) for w in model.get_weights()])
    one, other = (
        model(tokenizer(f"a fine {word} was good")) for word in ("film", "정말")
    )  # [CLS] a fine WORD was good [SEP]
    changed = {
        name: np.abs(one[name] - other[name]).max(-1)[0] > 1e-6
        for name in ("forward_logits", "backward_logits")
    }
    assert changed["forward_logits"].tolist() == [False] * 3 + [True] * 4
    assert changed["backward_logits"].tolist() == [True] * 4 + [False] * 3


def test_a_new_bias_is_the_log_of_the_words_shares(tokenizer, batches):
    config = ElmoConfig(tokenizer.vocabulary_size, 10, hidden_dim=4, filters=(2,))
    model = build_model(config, "bidirectional_lm")
    BidirectionalLM().initialise_head(model, batches)
    _, labels = next(batches.epoch())
    words = np.where(labels < 10, labels, 1)[labels >= 0]
    counts = np.bincount(words, minlength=10) + 0.1
    bias = model.get_layer("lm_output").bias
    np.testing.assert_allclose(bias, np.log(counts / counts.sum()), rtol=1e-5)
    bias.assign(np.arange(10.0))
    BidirectionalLM().initialise_head(model, batches)
    np.testing.assert_array_equal(bias, np.arange(10.0))


def test_other_families_and_tokenizers_are_refused(tokenizer):
    objective, config = BidirectionalLM(), ElmoConfig(tokenizer.vocabulary_size)
    objective.check(config, tokenizer)
    with pytest.raises(InputError, match="'bidirectional_lm' does not fit the family 'recurrent'"):
        objective.check(RecurrentConfig(), tokenizer)
    pieces, _ = train_tokenizer(TEXTS, "wordpiece", 60)
    with pytest.raises(InputError, match="reads whole words; give a tokenizer from train_tok"):
        objective.check(config, pieces)
