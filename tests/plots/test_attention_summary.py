"""Each pattern of a head has its sentence."""

import dataclasses

import numpy as np
import pytest

from tests.plots.attentions import layer_of
from tfnlp.plots.attention_summary import head_sentence, page_sentence

LENGTH = 8
NAMES = [*"abcdefgh"]
BACK = np.diag(np.eye(LENGTH)[0])  # the first token looks at itself


def sentence(weights, names=NAMES, visible=True, rows="tokens"):
    weights = np.array(weights, float)
    layer = dataclasses.replace(
        layer_of(1, *weights.shape),
        weights=weights[None],
        visible=np.broadcast_to(visible, (1, *weights.shape)),
        rows=rows,
        columns="tokens",
    )
    return head_sentence(layer, 0, {"tokens": names, "words": ["x"] * len(weights)})


@pytest.mark.parametrize(
    ("weights", "pattern", "words"),
    [
        (np.eye(LENGTH, k=-1) + BACK, "the previous token", "(88 %)"),
        (np.eye(LENGTH), "itself", "(100 %)"),
        (np.eye(LENGTH, k=1), "the next token", "(88 %)"),
        (np.tile(np.eye(LENGTH)[0], (LENGTH, 1)), "the first token", "(100 %)"),
        (np.tile(np.eye(LENGTH)[-1], (LENGTH, 1)), "the last token", "(100 %)"),
        (np.full((LENGTH, LENGTH), 1 / LENGTH), "all tokens evenly", "almost evenly"),
        (np.tile(np.eye(LENGTH)[3], (LENGTH, 1)), "one token", "at “d” (100 %)"),
        (sum(np.eye(LENGTH, k=k) for k in (-1, 0, 1)) / 3, "its neighbours", "(92 %)"),
        (np.tile([0.2, 0, 0.35, 0, 0, 0.45, 0, 0], (LENGTH, 1)), "one token", "“f” (45 %)"),
        (np.tile([0.3, 0, 0.35, 0, 0, 0.35, 0, 0], (LENGTH, 1)), "no single pattern", "“c”"),
        (np.tile([0.38, 0, 0.3, 0, 0, 0.32, 0, 0], (LENGTH, 1)), "no single pattern", "(38 %)"),
    ],
)
def test_patterns_of_one_text(weights, pattern, words):
    found, said = sentence(weights)
    assert found == pattern and words in said


def test_a_second_pattern_the_same_token_and_what_must_not_be_seen():
    _, said = sentence(0.6 * np.eye(LENGTH) + 0.4 * np.eye(LENGTH)[0])
    assert said.startswith("It looks mostly at itself (") and "and the first token (" in said
    same = np.array([[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0.0]])
    assert sentence(same, ["a", "a", "b", "b"])[0] == "the same token elsewhere"
    # The first token sees itself alone, which is no choice: the others look back.
    back = np.eye(3, k=-1) + np.diag([1, 0, 0])
    causal = np.tri(3, dtype=bool)
    said = sentence(back, ["a", "b", "c"], causal)[1]
    assert said == "It looks mostly at the previous token (100 %)."
    assert sentence(np.ones((1, 1)), ["a"])[0] == "nothing to choose"


def test_patterns_of_a_translation():
    spread = 0.6 * np.eye(LENGTH) + 0.4 / LENGTH
    assert sentence(spread, rows="words")[0] == "the source in its order"
    first = np.tile(np.eye(LENGTH)[0], (LENGTH, 1))
    assert sentence(first, rows="words")[0] == "the first token of the source"


def test_a_page_counts_its_patterns():
    said = page_sentence(["itself", "itself", "the first token", "no single pattern"])
    assert said.startswith("Of 4 heads, 2 look mostly at itself, 1 looks mostly at the first")
