"""Scores of the next token against `transformers`' processors, for batches and one by one."""

import numpy as np
import pytest
import tensorflow as tf

from tests.parity.compare import near
from tfnlp.generation import Constraints, Greedy, Sample, numpy_rules, sampling
from tfnlp.generation.constraints import Rules
from tfnlp.generation.generation_settings import SearchSettings

torch = pytest.importorskip("torch", reason="parity needs .[parity]")
transformers = pytest.importorskip("transformers", reason="parity needs .[parity]")
processors = transformers.generation.logits_process

V, ROWS, PROMPT, WRITTEN = 40, 30, 6, 9
ENDS = (7, 8)
RNG = np.random.default_rng(0)
# Few tokens, so that n-grams repeat.
TOKENS = RNG.integers(0, 10, (ROWS, PROMPT + WRITTEN)).astype("int32")
SCORES = (3 * RNG.normal(size=(ROWS, V))).astype("float32")


def theirs(*processes):
    """Scores after processors of `transformers`, in order."""
    ids = torch.tensor(TOKENS).long()
    return processors.LogitsProcessorList(processes)(ids, torch.tensor(SCORES)).numpy()


def check(ours, expected):
    for scores in ours:
        np.testing.assert_array_equal(np.isneginf(scores), np.isneginf(expected))
        near(scores[np.isfinite(scores)], expected[np.isfinite(expected)], 1e-6)


@pytest.mark.parametrize(
    ("constraints", "processes"),
    [
        ({"repetition_penalty": 1.3}, [processors.RepetitionPenaltyLogitsProcessor(1.3)]),
        ({"repetition_penalty": 0.7}, [processors.RepetitionPenaltyLogitsProcessor(0.7)]),
        *(
            ({"no_repeat_ngram_size": n}, [processors.NoRepeatNGramLogitsProcessor(n)])
            for n in (1, 2, 3, 20)
        ),
        (
            {"forbidden": ((5,), (7,), (1, 2), (0, 1, 30), *((i, 31) for i in range(9)))},
            [
                processors.NoBadWordsLogitsProcessor(
                    [[5], [7], [1, 2], [0, 1, 30], *([i, 31] for i in range(9))], list(ENDS)
                )
            ],
        ),
        (
            {"min_new_tokens": WRITTEN + 1, "renormalize": True},
            [
                processors.MinNewTokensLengthLogitsProcessor(PROMPT, WRITTEN + 1, list(ENDS)),
                processors.LogitNormalization(),
            ],
        ),
        (
            {"forced_last": 3},
            [processors.ForcedEOSTokenLogitsProcessor(PROMPT + WRITTEN + 1, 3)],
        ),
    ],
)
def test_constraints(constraints, processes):
    settings = SearchSettings(Greedy(), Constraints(**constraints), WRITTEN + 1, ENDS, 0)
    prompt, written = TOKENS[:, :PROMPT], TOKENS[:, PROMPT:]
    rules = Rules(settings, tf.constant(prompt), tf.ones_like(prompt), 1)
    tokens = np.pad(written, ((0, 0), (0, 1)))[:, None]
    of_batch = rules(tf.constant(SCORES[:, None]), tf.constant(tokens), WRITTEN)[:, 0]
    by_text = [
        numpy_rules.TextRules(settings, first.tolist())(scores[None], [ids.tolist()])[0]
        for scores, first, ids in zip(SCORES, prompt, written, strict=True)
    ]
    check([of_batch.numpy(), np.stack(by_text)], theirs(*processes))


@pytest.mark.parametrize(
    ("sample", "processes"),
    [
        (Sample(temperature=0.6), [processors.TemperatureLogitsWarper(0.6)]),
        (Sample(top_k=5), [processors.TopKLogitsWarper(5)]),
        (Sample(top_k=V + 5), [processors.TopKLogitsWarper(V + 5)]),
        *((Sample(top_p=p), [processors.TopPLogitsWarper(p)]) for p in (0.01, 0.5, 0.95)),
        *((Sample(min_p=p), [processors.MinPLogitsWarper(p)]) for p in (0.05, 0.9)),
        (
            Sample(temperature=1.7, top_k=20, top_p=0.8, min_p=0.1),
            [
                processors.TemperatureLogitsWarper(1.7),
                processors.TopKLogitsWarper(20),
                processors.TopPLogitsWarper(0.8),
                processors.MinPLogitsWarper(0.1),
            ],
        ),
    ],
)
def test_cuts_of_sampling_and_draws(sample, processes):
    of_batch = sampling.filtered(tf.constant(SCORES), sample).numpy()
    by_text = np.stack([numpy_rules.filtered(row, sample) for row in SCORES])
    expected = theirs(*processes)
    check([of_batch, by_text], expected)
    draws = Sample(seed=1).draws(0, 0, ROWS)
    tokens = sampling.draw(tf.constant(of_batch), tf.constant(draws)).numpy()
    assert [numpy_rules.draw(*pair) for pair in zip(by_text, draws, strict=True)] == [*tokens]
    assert np.isfinite(expected[np.arange(ROWS), tokens]).all()
