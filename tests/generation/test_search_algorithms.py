"""Beam search against all texts, and ends of texts."""

import itertools

import numpy as np
import pytest
import tensorflow as tf

from tfnlp.generation import Beam, Constraints, Greedy
from tfnlp.generation.generation_settings import SearchSettings
from tfnlp.generation.search_algorithms import search

END = 0


class Table:
    """A decoder whose next token depends on the last alone: logits (V, V), those of the row."""

    start_token_id = None

    def __init__(self, logits):
        self.logits = tf.constant(logits, tf.float32)

    def start(self, prompt, prompt_mask, beams, steps):
        return tf.gather(self.logits, prompt[:, -1]), ()

    def step(self, token_ids, parents, number, state):
        return tf.gather(self.logits, token_ids), state


def found(logits, how, steps=3, constraints=None, prompt=1, draws=None, ends=(END,)):
    prompt = tf.constant([[prompt]])
    draws = tf.zeros((1, steps)) if draws is None else draws
    settings = SearchSettings(how, constraints or Constraints(), steps, ends, END)
    result = search(Table(logits), prompt, tf.ones_like(prompt), draws, settings)
    return [x.numpy()[0] for x in result]


def all_texts(logits, steps, prompt=1):
    """Every text and its log-probability."""
    logs = np.asarray(tf.nn.log_softmax(tf.constant(logits)), "float64")
    texts = {}
    for ids in itertools.product(range(len(logits)), repeat=steps):
        ids = ids[: ids.index(END) + 1] if END in ids else ids
        texts[ids] = sum(logs[a, b] for a, b in zip((prompt, *ids), ids, strict=False))
    return texts


@pytest.mark.parametrize(
    ("penalty", "normalization"), [(0.0, "length"), (2.5, "length"), (1.0, "gnmt")]
)
def test_a_wide_beam_finds_the_best_of_all_texts(penalty, normalization):
    logits = np.random.default_rng(0).normal(size=(3, 3)).astype("float32")
    how = Beam(27, penalty, normalization, early_stopping="never", best=5)
    # Of three tokens there are never 54 to go on: the table gets tokens that nobody writes.
    wide = np.full((60, 60), -60.0, "float32")
    wide[:3, :3] = logits
    tokens, lengths, scores = found(wide, how)
    shift, scale = (0, 1) if normalization == "length" else (5, 6)
    texts = all_texts(logits, 3).items()
    best = sorted(((s / ((shift + len(t)) / scale) ** penalty, t) for t, s in texts), reverse=True)
    np.testing.assert_allclose(scores, [s for s, _ in best[:5]], atol=1e-5)
    texts = [tuple(row[:n].tolist()) for row, n in zip(tokens, lengths, strict=True)]
    assert texts == [t for _, t in best[:5]]


def test_a_beam_finds_what_greedy_search_misses():
    # From 1, token 2 is likelier than 3, but what comes after 3 is certain.
    logits = np.log(np.full((8, 8), 1e-6, "float32"))
    for before, after, share in ((1, 2, 0.5), (1, 3, 0.4), (1, 4, 0.1)):
        logits[before, after] = np.log(share)
    for after in range(4, 8):
        logits[2, after] = np.log(0.25)
    logits[3, 4] = 0
    assert found(logits, Greedy(), steps=2)[0].tolist() == [[2, 4]]
    tokens, _, scores = found(logits, Beam(2, length_penalty=0), steps=2)
    assert tokens.tolist() == [[3, 4]]
    np.testing.assert_allclose(np.exp(scores), [0.4], rtol=1e-4)


@pytest.mark.parametrize("penalty", [-1.0, 0.0])
def test_a_longer_text_never_scores_better_without_a_bonus_for_length(penalty):
    """So the bound of "never" is that of the present length."""
    for seed in range(5):
        logits = 2 * np.random.default_rng(seed).normal(size=(8, 8)).astype("float32")
        logits[:, END] += 1
        searches = (Beam(3, penalty, early_stopping=x, best=3) for x in (False, "never"))
        for a, b in zip(*(found(logits, how, steps=6) for how in searches), strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("early_stopping", [True, "never"])
def test_the_texts_of_a_prompt_do_not_depend_on_other_prompts(early_stopping):
    """One search ends before the other, whose loop goes on."""
    how = Beam(2, 2.0, early_stopping=early_stopping, best=2)
    prompts = tf.constant([[1], [2], [3], [4]])
    for seed in range(4):
        logits = 2 * np.random.default_rng(seed).normal(size=(8, 8)).astype("float32")
        logits[:, END] += 2
        settings = SearchSettings(how, Constraints(), 6, (END,), END)
        draws = tf.zeros((4, 6))
        together = search(Table(logits), prompts, tf.ones_like(prompts), draws, settings)
        for row in range(4):
            alone = found(logits, how, steps=6, prompt=row + 1)
            for a, b in zip(alone, together, strict=True):
                np.testing.assert_allclose(a, b[row], atol=1e-5)


def test_after_the_end_there_is_padding_and_the_loop_ends():
    logits = np.full((4, 4), -9, "float32")
    logits[1, 2] = logits[2, END] = logits[3, 3] = 9
    tokens, lengths, _ = found(logits, Greedy(), steps=50)
    assert tokens[0].tolist() == [2, END] + [END] * 48 and lengths.tolist() == [2]
    prompts = tf.constant([[1], [3]])  # the second text goes on
    settings = SearchSettings(Greedy(), Constraints(), 5, (END,), END)
    both = search(Table(logits), prompts, tf.ones_like(prompts), tf.zeros((2, 5)), settings)
    assert both.lengths.numpy().tolist() == [[2], [5]]
    rules = Constraints(forced_first=3, forced_last=1)
    tokens, _, _ = found(logits, Beam(2), steps=3, constraints=rules)
    assert tokens[0, 0] == 3 and tokens[0, -1] == 1
