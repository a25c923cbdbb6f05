"""Likelihoods of completions against `transformers`' GPT-2, on the same weights and tokens."""

import numpy as np
import pytest

from tests.grammar_corpus import make_reviews
from tfnlp.checkpoints import save_model
from tfnlp.generation import LikelihoodScorer
from tfnlp.models import BertConfig, Gpt2Config, build_model
from tfnlp.text import train_tokenizer
from tfnlp.text.tokenizers.special_tokens import plain_ids
from tfnlp.utils.errors import InputError

torch = pytest.importorskip("torch", reason="parity needs .[parity]")
transformers = pytest.importorskip("transformers", reason="parity needs .[parity]")

SIZES = {"num_layers": 2, "num_heads": 2, "hidden_dim": 16, "intermediate_dim": 64}


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    texts = [text for text, _ in make_reviews(100)]
    tokenizer = train_tokenizer(texts, "bpe", 300, "gpt2")[0]
    sizes = SIZES | {"vocabulary_size": tokenizer.vocabulary_size, "max_length": 40}
    model = build_model(Gpt2Config(**sizes, initializer_range=0.6), "causal_lm")
    folder = tmp_path_factory.mktemp("model")
    save_model(model, folder)
    reference = transformers.GPT2LMHeadModel.from_pretrained(folder).eval()
    return LikelihoodScorer(model, tokenizer, batch_size=4), reference


def log_likelihood(reference, prompt, completion):
    ids = torch.tensor([[*prompt, *completion]])
    with torch.no_grad():
        logs = torch.log_softmax(reference(ids).logits[0, :-1], dim=-1)
    rows = range(len(prompt) - 1, ids.shape[1] - 1)
    return sum(float(logs[row, token]) for row, token in zip(rows, completion, strict=True))


def test_sums_of_log_softmax(pair):
    scorer, reference = pair
    rng = np.random.default_rng(0)
    rows = [
        [rng.integers(0, 300, rng.integers(1, n)).tolist() for n in (30, 10)] for _ in range(17)
    ]
    rows += [[rows[0][0], [5]], [rows[0][0], [9]], [rows[0][0], [5, 6]]]  # of one prompt
    rows += [[[7, 8, 9], [5]], [[7], [8, 9, 6]]]  # of one row, from two places on
    found = scorer.score_ids(*zip(*rows, strict=True))
    expected = [log_likelihood(reference, *row) for row in rows]
    np.testing.assert_allclose(found, expected, atol=1e-4)
    prompts, completions = ["", "the film is", "it"], ["the cast", " good", " is not dull"]
    expected = [
        log_likelihood(
            reference, ids or [scorer.end], plain_ids(scorer.tokenizer, [completion])[0]
        )
        for ids, completion in zip(plain_ids(scorer.tokenizer, prompts), completions, strict=True)
    ]
    np.testing.assert_allclose(scorer(prompts, completions), expected, atol=1e-4)
    assert scorer([], []).shape == (0,)


def test_bad_input_is_told(pair):
    scorer, _ = pair
    bert = build_model(BertConfig(**SIZES, vocabulary_size=300), "masked_lm")
    for call, words in (
        (lambda: scorer(["a", "film " * 60], ["b", "c"]), r"prompts\[1\]"),
        (lambda: scorer(["a"], [""]), r"completions\[0\]"),
        (lambda: scorer(["a"], []), "0 texts"),
        (lambda: LikelihoodScorer(bert, scorer.tokenizer), "'masked_lm'"),
        (lambda: LikelihoodScorer(scorer.model, scorer.tokenizer, end_token="[E]"), "end_token"),
    ):
        with pytest.raises(InputError, match=words):
            call()
