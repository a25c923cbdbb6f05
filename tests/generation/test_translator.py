import re

import pytest

from tests.grammar_corpus import make_reviews
from tests.models.small import sizes
from tfnlp.generation import Beam, Constraints, Generator, Greedy, Sample, Translator
from tfnlp.generation.continuations import Generated
from tfnlp.models import Gpt2Config, TransformerConfig, build_model
from tfnlp.text import train_tokenizer
from tfnlp.utils.errors import InputError

pytestmark = pytest.mark.usefixtures("no_xla")

SOURCES = ["the film is fine", "a dull plot", "honestly , the cast is really good", ""]


@pytest.fixture(scope="module")
def texts():
    return [text for text, _ in make_reviews(200)]


@pytest.fixture(scope="module")
def tokenizer(texts):
    return train_tokenizer(texts, "unigram", 200, "marian")[0]


def transformer(vocabulary_size, **fields):
    small = sizes(vocabulary_size=vocabulary_size, num_layers=1, hidden_dim=16, max_length=40)
    small |= {"initializer_range": 0.6, "pad_token_id": 2, "start_token_id": 2, "end_token_id": 0}
    return build_model(TransformerConfig(**small | fields), "sequence_to_sequence")


@pytest.fixture(scope="module")
def model(tokenizer):
    return transformer(tokenizer.vocabulary_size)


def test_beams_and_constraints(model, tokenizer):
    (found,) = Translator(model, tokenizer, search=Beam(4, best=3), max_new_tokens=6)(SOURCES[:1])
    assert found[0].score >= found[1].score >= found[2].score
    assert len({one.token_ids for one in found}) == 3
    rules = Constraints(forced_first=9, no_repeat_ngram_size=1, min_new_tokens=5)
    translator = Translator(model, tokenizer, search=Greedy(), constraints=rules, max_new_tokens=6)
    (other,), blank = translator([SOURCES[0], ""])
    ids = other.token_ids
    assert ids[0] == 9 and len({*ids}) == len(ids) >= 5
    assert 2 not in ids  # padding, whatever the constraints
    assert other.text == tokenizer.decode(ids) and other.score is None
    assert not other.ended  # constraints that are given force no end
    assert blank == [Generated("", (), True, None)] and translator([]) == []


def test_two_vocabularies(texts, tokenizer):
    target, _ = train_tokenizer([text[::-1] for text in texts], "unigram", 150, "marian")
    model = transformer(
        tokenizer.vocabulary_size,
        share_embeddings=False,
        target_vocabulary_size=target.vocabulary_size,
    )
    (found,) = Translator(model, tokenizer, target, max_new_tokens=6)(SOURCES[:1])
    assert found[0].text == target.decode(found[0].token_ids)
    with pytest.raises(InputError, match="The vocabulary has"):
        Translator(model, tokenizer)


def test_special_tokens_are_not_part_of_a_source(texts):
    tokenizer, _ = train_tokenizer(texts, "wordpiece", 100)
    cls, end = (tokenizer.token_id(token) for token in ("[CLS]", "[SEP]"))
    model = transformer(
        tokenizer.vocabulary_size, pad_token_id=0, start_token_id=cls, end_token_id=end
    )
    translator = Translator(model, tokenizer, search=Greedy(), max_new_tokens=3)
    framed = tokenizer.encode(SOURCES[:1])[0].token_ids
    assert framed[0] == cls
    assert translator.source_ids(SOURCES[:1]) == [framed[1:]]


def test_sources_that_are_too_long_are_cut_or_skipped(model, tokenizer, caplog):
    translator = Translator(model, tokenizer, search=Greedy(), max_new_tokens=3)
    long = " ".join(["one"] * 60)
    whole, cut = (translator.source_ids(["two", long], too_long=way) for way in ("skip", "cut"))
    assert whole[0] == cut[0] == tokenizer.encode(["two"])[0].token_ids
    ids = tokenizer.encode([long])[0].token_ids
    assert whole[1] == [] and cut[1] == [*ids[:39], ids[-1]]
    for way in ("were skipped", "were cut"):
        assert re.search(rf"1 of 2 sources .* 40 positions, .* they {way}", caplog.text)
    skipped, short = (translator(texts, too_long="skip") for texts in (["two", long], ["two"]))
    assert skipped == [*short, [Generated("", (), True, None)]]
    with pytest.raises(InputError, match=r"too_long=drop is unknown; use one of error, cut"):
        translator(["two"], too_long="drop")


def test_draws_of_a_source_depend_on_its_number_and_the_seed_alone(model, tokenizer):
    """As where a file is translated in parts, or a killed run goes on."""
    translator, other = (
        Translator(model, tokenizer, search=Sample(seed=seed, texts=2), max_new_tokens=4)
        for seed in (0, 1)
    )
    rows = translator.source_ids(SOURCES[:3])
    found = dict(translator.each_translation(rows))
    assert sorted(found) == [0, 1, 2] and {len(texts) for texts in found.values()} == {2}
    for text in (text for texts in found.values() for text in texts):
        assert text.ended == (len(text.token_ids) < 3)  # the fourth token is a forced end
    assert dict(translator.each_translation(rows[2:], first=2)) == {0: found[2]}
    assert dict(translator.each_translation([[], *rows[1:]]))[1] == found[1]
    assert dict(other.each_translation(rows)) != found
    # A string is one text, and any iterable of them goes.
    assert translator(SOURCES[0]) == translator(x for x in SOURCES[:1]) == [found[0]]
    assert translator(["\t", SOURCES[1]]) == [[Generated("", (), True, None)] * 2, found[1]]


def test_bad_input_is_refused_before_anything_runs(model, tokenizer):
    gpt2 = Gpt2Config(tokenizer.vocabulary_size, num_layers=1, num_heads=2, hidden_dim=16)
    without_end = transformer(tokenizer.vocabulary_size, end_token_id=500)
    for call, message in (
        (lambda: Translator(model, tokenizer)(["a", "long " * 50]), r"sources\[1\]"),
        (lambda: Translator(model, tokenizer, max_new_tokens=41), "max_new_tokens=41"),
        (lambda: Translator(transformer(9), tokenizer), "The vocabulary"),
        (lambda: Translator(without_end, tokenizer), "id 500"),
        (lambda: Translator(build_model(gpt2, "causal_lm"), tokenizer), "a Generator"),
        (lambda: Generator(model, tokenizer), "a Translator"),
    ):
        with pytest.raises(InputError, match=message):
            call()
