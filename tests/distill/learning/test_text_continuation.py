"""Texts are continued as a loop over tokens draws them."""

import dataclasses

import numpy as np
import pytest

from distill.learning.augmentation_settings import ContinuationConfig
from distill.learning.text_continuation import TextContinuer
from tests.distill.learning.test_word_replacement import scores_of
from tests.models.small import sizes
from tfnlp.models import Gpt2Config, build_model
from tfnlp.utils.errors import InputError


def slow_continuations(model, tokenizer, texts, config):
    score, found = scores_of(model), []
    for number, text in enumerate(texts):
        words = text.split()
        kept = " ".join(words[: max(round(config.kept * len(words)), 1)])
        draws = np.random.default_rng([config.seed, number]).random(
            (config.copies, config.max_tokens)
        )
        copies = []
        for copy in range(config.copies):
            ids = [2, *map(tokenizer.vocabulary.index, tokenizer.tokens(kept))]
            for draw in draws[copy]:
                logits = score(ids)[-1].astype("float64")
                best = np.argsort(-logits, kind="stable")[: config.top_k]
                shares = np.exp(logits[best] / config.temperature)
                sums = np.cumsum(shares / shares.sum())
                token = next(t for t, s in zip(best, sums, strict=True) if s >= draw)
                if token == tokenizer.vocabulary.index("[SEP]"):
                    break
                ids.append(int(token))
            copies.append(ids)
        found.append((kept, copies))
    return found


def test_texts_are_continued_as_a_loop_draws_them(tokenizer):
    fields = {"vocabulary_size": tokenizer.vocabulary_size, "max_length": 12}
    fields = sizes(num_layers=1, hidden_dim=16, initializer_range=0.5, **fields)
    model = build_model(Gpt2Config(**fields), "causal_lm")
    texts = ["the film is not dull", "영화 정말 좋다", "plot"]
    drawn = ContinuationConfig(3, 0.5, max_tokens=8, top_k=6, temperature=1.5, seed=1)
    expected, lengths = slow_continuations(model, tokenizer, texts, drawn), set()
    for batch_size in (2, 64):
        found = TextContinuer(model, tokenizer, drawn, batch_size)(texts)
        for copies, (kept, right) in zip(found, expected, strict=True):
            for text, ids in zip(copies, right, strict=True):
                assert text.startswith(kept) and tokenizer.decode(ids) == text
                lengths.add(len(ids))
    assert len(lengths) > 1


def test_a_model_without_a_language_model_is_refused(tiny_config, tokenizer):
    model = build_model(dataclasses.replace(tiny_config, num_layers=1), "masked_lm")
    with pytest.raises(InputError, match="has the head 'masked_lm', but continuing texts needs"):
        TextContinuer(model, tokenizer)
