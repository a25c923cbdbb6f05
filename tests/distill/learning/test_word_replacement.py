"""Words are replaced as in the paper's algorithm, a word at a time."""

import dataclasses
import re

import keras
import numpy as np
import pytest
import tensorflow as tf

from distill.learning.augmentation_settings import ReplacementConfig
from distill.learning.word_neighbours import WordNeighbours
from distill.learning.word_replacement import WordReplacer
from tfnlp.models import build_model
from tfnlp.utils.errors import InputError

# In pieces: unbelievable, films, 지루하다; capitals, marks, numbers and what nobody knows.
TEXTS = [
    "the film is not dull , it is unbelievable !",
    "정말 지루하다 . 영화 좋다",
    "Films are FINE 1930s x",
    "",
    "plot",
]


@pytest.fixture(scope="module")
def masked_lm(tiny_config):
    keras.utils.set_random_seed(0)
    return build_model(dataclasses.replace(tiny_config, num_layers=1), "masked_lm")


def scores_of(model):
    """A function from the ids of one text to the logits (L, V); its graph is traced once."""
    keys = ("token_ids", "segment_ids", "padding_mask")

    @tf.function(input_signature=[tf.TensorSpec((1, None), "int32")])
    def run(ids):
        return model(dict(zip(keys, (ids, 0 * ids, 0 * ids + 1), strict=True)))["logits"]

    return lambda ids: run(np.array([ids], "int32")).numpy()[0]


def slow_copies(model, tokenizer, texts, config):
    """Algorithm 1, a word at a time."""
    words = {i: t for i, t in enumerate(tokenizer.vocabulary) if t.isalpha()}
    table = model.get_layer("embeddings").token_table.numpy()
    mask, score, found = tokenizer.vocabulary.index("[MASK]"), scores_of(model), []
    for number, text in enumerate(texts):
        places = [m.span() for m in re.finditer(r"\w+", text) if m.group().isalpha()]
        candidates = []
        for start, end in places:
            word = text[start:end]
            pieces = [tokenizer.vocabulary.index(t) for t in tokenizer.tokens(word)]
            if len(pieces) == 1:
                before = tokenizer.tokens(text[:start])
                ids = [2, *map(tokenizer.vocabulary.index, tokenizer.tokens(text)), 3]
                ids[1 + len(before)] = mask
                scores = score(ids)[1 + len(before)]
            else:
                vector = table[pieces].mean(0)
                scores = table @ vector / np.linalg.norm(vector) / np.linalg.norm(table, axis=1)
            best = sorted(words, key=lambda i: -scores[i])
            best = [words[i] for i in best if words[i] != word.lower()]
            candidates.append(sorted(best[: config.candidates]))
        rng = np.random.default_rng([config.seed, number])
        shape = (config.copies, len(places))
        replaced, draws = rng.random(shape) <= config.probability, rng.random(shape)
        copies = []
        for copy in range(config.copies):
            changed = text
            for i in reversed(range(len(places))):
                start, end = places[i]
                if replaced[copy, i]:
                    word = candidates[i][int(draws[copy, i] * len(candidates[i]))]
                    if text[start:end].isupper() and end - start > 1:
                        word = word.upper()
                    elif text[start].isupper():
                        word = word.capitalize()
                    changed = changed[:start] + word + changed[end:]
            copies.append(changed)
        found.append(copies)
    return found


def test_words_are_replaced_as_in_algorithm_1(masked_lm, tokenizer):
    config = ReplacementConfig(probability=0.5, copies=6, candidates=4, seed=3)
    vectors = WordNeighbours.of_model(masked_lm, tokenizer)
    found = slow_copies(masked_lm, tokenizer, TEXTS, config)
    for batch_size in (1, 64):
        replacer = WordReplacer(masked_lm, tokenizer, vectors, config, batch_size)
        assert replacer(TEXTS) == found
    assert found[3] == [""] * 6
    # Numbers and marks stay, and so do capitals.
    assert all(re.fullmatch(r"[A-Z가-힣].* \S+ \S*[A-Z가-힣]\S* 1930s .*", t) for t in found[2])
    changed = sum(
        a != b for t in found[0] for a, b in zip(t.split(), TEXTS[0].split(), strict=True)
    )
    assert 0.3 < changed / (6 * 8) < 0.7
    # What a text becomes depends on its number, not on the texts around it.
    assert replacer(TEXTS[2:], first=2) == found[2:]
    other = dataclasses.replace(config, seed=4, probability=1.0)
    (bare,) = WordReplacer(masked_lm, tokenizer, None, other)(TEXTS[:1])
    assert set(bare).isdisjoint(found[0])
    words = list(zip(*map(str.split, bare), strict=True))
    assert set(words[8]) == {"unbelievable"} and "dull" not in words[4]


def test_a_model_without_a_masked_language_model_is_refused(tiny_config, tokenizer):
    model = build_model(dataclasses.replace(tiny_config, num_layers=1), "classifier", 2)
    with pytest.raises(InputError, match="has the head 'classifier'; give a masked LM"):
        WordReplacer(model, tokenizer)
