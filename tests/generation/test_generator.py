"""Continuations of prompts: order, constraints and errors."""

import keras
import numpy as np
import pytest

from tests.generation.walk import logits_after
from tests.grammar_corpus import make_reviews
from tests.models.small import sizes
from tfnlp.generation import Beam, Constraints, Generator, Sample, forbidden_ids
from tfnlp.models import Gpt2Config, build_model
from tfnlp.text import train_tokenizer
from tfnlp.text.tokenizers.wordpiece import WordPieceTokenizer
from tfnlp.utils.errors import InputError

pytestmark = pytest.mark.usefixtures("no_xla")

PROMPTS = ["the film is", "", "결말은 아주", "honestly , " * 5 + "the cast is really"]


@pytest.fixture(scope="module")
def tokenizer():
    texts = [text for text, _ in make_reviews(200)]
    return train_tokenizer(texts, "bpe", 400, "gpt2")[0]


@pytest.fixture(scope="module")
def model(tokenizer):
    keras.utils.set_random_seed(0)  # else it depends on the tests before
    return gpt2(tokenizer.vocabulary_size)


def gpt2(vocabulary_size):
    fields = sizes(vocabulary_size=vocabulary_size, num_layers=1, max_length=64)
    return build_model(Gpt2Config(**fields), "causal_lm")


def test_texts_come_in_the_order_of_prompts_whatever_the_batch(model, tokenizer):
    generator = Generator(model, tokenizer, max_new_tokens=6, batch_size=2)
    found = generator(PROMPTS)
    assert generator._run.experimental_get_tracing_count() == 2  # prompts to 16, and to 32 tokens
    for prompt, (one,) in zip(PROMPTS, found, strict=True):
        ids = [int(i) for i in tokenizer.encode([prompt])[0].token_ids] or [
            *generator.settings.ends
        ]
        assert one.text == tokenizer.decode([*ids, *one.token_ids])[len(prompt) :]
        assert one.score is None and (one.ended or len(one.token_ids) == 6)
        for token in one.token_ids + generator.settings.ends * one.ended:
            assert np.argmax(logits_after(model, [ids])[0]) == token  # the most probable one
            ids.append(token)
    generator(["the cast", "the film is quite"])
    assert generator._run.experimental_get_tracing_count() == 2
    assert Generator(model, tokenizer)([]) == []


def test_constraints_limit_the_number_of_texts(model, tokenizer):
    first, other = tokenizer.encode(["film", "plot"]).token_ids[:2].tolist()
    one = {"max_new_tokens": 1, "constraints": Constraints(forced_first=first)}
    ((text,),) = Generator(model, tokenizer, Beam(4, best=4), **one)(["a"])
    assert text.token_ids == (first,) and -100 < text.score <= 0
    ids = tuple(i for i in range(tokenizer.vocabulary_size) if i not in (first, other))
    none = Constraints(forbidden=ids, min_new_tokens=3, no_repeat_ngram_size=1)
    for search in (Sample(), Beam(2)):
        with pytest.raises(InputError, match="no output for text 1: at some position no token"):
            Generator(model, tokenizer, search, none, max_new_tokens=3)([""])


def test_a_word_is_forbidden_with_a_space_and_without(tokenizer):
    word, spaced = (tuple(tokenizer.encode([x])[0].token_ids) for x in ("film", " film"))
    assert {*forbidden_ids(tokenizer, ["film"])} == {word, spaced} and word != spaced
    with pytest.raises(InputError, match=r"^words\[1\]='' has no token that could be forbidden;"):
        forbidden_ids(tokenizer, ["film", ""])


def test_special_tokens_are_not_part_of_a_prompt():
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "b", "c", "d"]
    generator = Generator(gpt2(8), WordPieceTokenizer(words), max_new_tokens=2)
    assert generator.settings.ends == (3,)
    assert generator._ids(["a b", ""]) == [[4, 5], [3]]


def test_bad_input_is_refused_before_anything_runs(model, tokenizer, monkeypatch):
    long = "the film is " * 30
    for call, message in (
        (lambda: Generator(model, tokenizer)([PROMPTS[0]]), "max_new_tokens=64"),
        (lambda: Generator(model, tokenizer, max_new_tokens=4)(["a", long]), r"prompts\[1\] has"),
        (lambda: Generator(model, tokenizer, max_new_tokens=4)(["a", 5]), r"prompts\[1\] is 5"),
        (lambda: Generator(model, tokenizer, max_new_tokens=0), "max_new_tokens=0"),
        (lambda: Generator(model, tokenizer, end_token="[END]"), "end_token"),
        (lambda: Generator(model, tokenizer, Beam(300)), "beams=300"),
        (lambda: Generator(gpt2(90), tokenizer), "The vocabulary"),
    ):
        with pytest.raises(InputError, match=message):
            call()
    monkeypatch.setattr(tokenizer, "token_id", lambda token: None)
    with pytest.raises(InputError, match="end token"):
        Generator(model, tokenizer)
