"""Generation against `transformers`' `generate`, on the same weights, prompts and sources."""

from typing import NamedTuple

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.grammar_corpus import make_reviews
from tests.parity.compare import near
from tests.text.tokenizers.test_marian import english, pair_of_models  # noqa: F401  fixtures
from tfnlp.checkpoints import load_model, save_model
from tfnlp.generation import Beam, Constraints, Generator, Greedy, Translator, decoder_of
from tfnlp.generation.generation_settings import SearchSettings
from tfnlp.generation.search_algorithms import search
from tfnlp.models import Gpt2Config, GptConfig, TransformerConfig, build_model
from tfnlp.text import load_tokenizer, train_tokenizer
from tfnlp.text.tokenizers.marian import MarianTokenizer

torch = pytest.importorskip("torch", reason="parity needs .[parity]")
transformers = pytest.importorskip("transformers", reason="parity needs .[parity]")

V, BATCH, WIDTH, STEPS = 60, 100, 9, 14
END, PAD = 7, 59  # in no prompt
SIZES = {"vocabulary_size": V, "num_layers": 2, "num_heads": 2, "hidden_dim": 16}
SIZES |= {"intermediate_dim": 64, "initializer_range": 0.6}
RULES = {"repetition_penalty": 1.3, "no_repeat_ngram_size": 2, "min_new_tokens": 3}
WORDS = ((5,), (8, 9), (1, 2, 3), (END, 4))


class Pair(NamedTuple):
    """Our model and theirs, the ids and mask to start from, the padding, and own constraints."""

    model: object
    reference: object
    inputs: tuple
    pad: int
    constraints: dict


@pytest.fixture(scope="module", params=["gpt2", "marian"])
def pair(request, tmp_path_factory):
    keras.utils.set_random_seed(0)  # whatever ran before
    rng, continues = np.random.default_rng(0), request.param.startswith("gpt")
    ids = rng.integers(10, V if continues else PAD, (BATCH, WIDTH))
    lengths = rng.integers(1, WIDTH + 1, (BATCH, 1))
    if continues:  # prompts of 1 to WIDTH tokens, padded at the left
        config = {"gpt": GptConfig, "gpt2": Gpt2Config}[request.param]
        model = build_model(config(**SIZES, max_length=WIDTH + STEPS), "causal_lm")
        auto, pad, own = transformers.AutoModelForCausalLM, END, {}
        mask, tables = np.arange(WIDTH) >= WIDTH - lengths, []
    else:  # sources, padded at the right
        config = TransformerConfig(
            **SIZES,
            max_length=40,
            activation="silu",
            norm_first=request.param == "pegasus",
            output_bias=True,
            pad_token_id=PAD,
            start_token_id=PAD,
            end_token_id=END,
        )
        model = build_model(config, "sequence_to_sequence")
        model.set_weights([rng.normal(size=w.shape, scale=0.6) for w in model.get_weights()])
        auto, pad = transformers.AutoModelForSeq2SeqLM, PAD
        # As the folders of Marian say of themselves.
        own = {"forbidden": ((PAD,),), "forced_last": END, "renormalize": True}
        mask, tables = np.arange(WIDTH) < lengths, [model.get_layer("lm_bias").bias]
    inputs = np.where(mask, ids, pad).astype("int32"), mask.astype("int32")
    # The token that is written most takes the place of the end.
    written, _, _ = ours(Pair(model, None, inputs, pad, own), Greedy())
    often = np.bincount(written[:, 0, :3].ravel(), minlength=V).argmax()
    order = np.arange(V)
    order[[END, often]] = often, END
    for variable in (model.get_layer("embeddings").token_table, *tables):
        variable.assign(variable.numpy()[order])
    folder = tmp_path_factory.mktemp("model")
    save_model(model, folder)
    return Pair(model, auto.from_pretrained(folder).eval(), inputs, pad, own)


def ours(pair, how, constraints=None, jit_compile=False, ends=(END,)):
    constraints = pair.constraints | (constraints or {})
    if pair.constraints:
        constraints["forbidden"] = (*constraints["forbidden"], PAD)
    settings = SearchSettings(how, Constraints(**constraints), STEPS, ends, pair.pad)
    decoder = decoder_of(pair.model)

    @tf.function(autograph=False, jit_compile=jit_compile)
    def run(ids, mask):
        return search(decoder, ids, mask, tf.zeros((BATCH, STEPS)), settings)

    return [x.numpy() for x in run(*map(tf.constant, pair.inputs))]


def theirs(pair, num_beams=1, words=(), **how):
    """Token ids, filled up with padding, and scores of beam search."""
    ids, mask = (torch.tensor(x).long() for x in pair.inputs)
    if words:
        padding = [[PAD]] if pair.constraints else []
        how["bad_words_ids"] = [*map(list, words), *padding]
    with torch.no_grad():
        found = pair.reference.generate(
            ids,
            attention_mask=mask,
            max_new_tokens=STEPS,
            pad_token_id=pair.pad,
            eos_token_id=how.pop("ends", END),
            do_sample=False,
            num_beams=num_beams,
            return_dict_in_generate=True,
            output_scores=True,
            **how,
        )
    start = 1 if pair.constraints else WIDTH
    tokens = found.sequences[:, start:].numpy()
    full = np.full((len(tokens), STEPS), pair.pad)
    full[:, : tokens.shape[1]] = tokens
    return full, getattr(found, "sequences_scores", None)


@pytest.mark.parametrize(
    ("constraints", "settings"),
    [
        ({}, {}),
        ({"repetition_penalty": 1.3, "no_repeat_ngram_size": 2},) * 2,
        (
            RULES | {"forbidden": WORDS, "forced_first": 11, "forced_last": 3},
            RULES | {"words": WORDS, "forced_eos_token_id": 3},
        ),
        ({"repetition_penalty": 0.8, "no_repeat_ngram_size": 1},) * 2,
    ],
    ids=["plain", "no repeats", "constrained", "no token twice"],
)
def test_greedy(pair, constraints, settings):
    if "forced_first" in constraints:  # theirs is for encoder-decoders alone
        if pair.constraints:
            settings = settings | {"forced_bos_token_id": 11}
        else:
            constraints = constraints | {"forced_first": None}
    elif constraints.get("no_repeat_ngram_size") == 1 and not pair.constraints:
        # Their padding counts as tokens that stand there: without any, the end may come.
        pair = pair._replace(inputs=[np.repeat(x[:, -1:], WIDTH, axis=1) for x in pair.inputs])
    tokens, lengths, _ = ours(pair, Greedy(), constraints)
    expected, _ = theirs(pair, **settings)
    np.testing.assert_array_equal(tokens[:, 0], expected)
    written = (expected != pair.pad).sum(axis=1) + (pair.pad == END)
    np.testing.assert_array_equal(lengths[:, 0], np.minimum(written, STEPS))
    ended = (lengths < STEPS).sum()
    assert ended > 10 and (pair.constraints or ended < BATCH)


@pytest.mark.parametrize(
    ("beam", "constraints", "settings"),
    [
        (Beam(4), {}, {}),
        (
            Beam(4, length_penalty=0.6, early_stopping=True, best=3),
            {},
            {"length_penalty": 0.6, "early_stopping": True, "num_return_sequences": 3},
        ),
        (
            Beam(4, length_penalty=0.3, early_stopping="never"),
            {},
            {"length_penalty": 0.3, "early_stopping": "never"},
        ),
        (
            Beam(4, length_penalty=0.2, best=4),
            RULES | {"forbidden": WORDS},
            RULES | {"words": WORDS, "length_penalty": 0.2, "num_return_sequences": 4},
        ),
    ],
    ids=["plain", "early", "never", "constrained"],
)
def test_beam_search_of_100_prompts(pair, beam, constraints, settings):
    tokens, lengths, scores = ours(pair, beam, constraints)
    expected, expected_scores = theirs(pair, num_beams=4, **settings)
    np.testing.assert_array_equal(tokens.reshape(-1, STEPS), expected)
    near(scores.ravel(), expected_scores, 1e-4)
    assert (lengths < STEPS).sum() > 10  # some have ended before


@pytest.mark.parametrize("pair", ["gpt2"], indirect=True)
def test_several_end_tokens(pair):
    tokens, lengths, _ = ours(pair, Greedy())
    ends = END, int(np.bincount(tokens[:, 0, 1][lengths[:, 0] > 2], minlength=V).argmax())
    assert ends[0] != ends[1]
    for how, settings in ((Greedy(), {}), (Beam(3), {"num_beams": 3})):
        rules = {"min_new_tokens": 2}
        tokens, _, _ = ours(pair, how, rules, ends=ends)
        expected, _ = theirs(pair, ends=list(ends), **settings, **rules)
        np.testing.assert_array_equal(tokens[:, 0], expected)


def test_stop_strings(tmp_path):
    """Theirs end a text with the token that ends a stop string, and keep it."""
    keras.utils.set_random_seed(0)
    tokenizer, _ = train_tokenizer([text for text, _ in make_reviews(200)], "bpe", 300, "gpt2")
    sizes = SIZES | {"vocabulary_size": tokenizer.vocabulary_size, "max_length": 64}
    model = build_model(Gpt2Config(**sizes), "causal_lm")
    save_model(model, tmp_path, tokenizer=tokenizer)
    their_tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path)
    reference = transformers.AutoModelForCausalLM.from_pretrained(tmp_path).eval()
    words = [tokenizer.decode([i]).strip() for i in range(tokenizer.vocabulary_size)]
    forbidden = [i for i, word in enumerate(words) if not word.isalnum()]  # parts of characters
    rules = Constraints(min_new_tokens=STEPS, forbidden=tuple(forbidden))
    options = {"constraints": rules, "max_new_tokens": STEPS}
    prompts = ["the film is", "결말은", "honestly ,", "a plot"]
    wholes = [text for (text,) in Generator(model, tokenizer, **options)(prompts)]
    # The last character of the third token and the first of the fourth.
    ends = [len(tokenizer.decode(whole.token_ids[:3])) for whole in wholes]
    stops = [whole.text[end - 1 : end + 1] for whole, end in zip(wholes, ends, strict=True)]
    texts = Generator(model, tokenizer, stop_strings=stops, **options)(prompts)
    for prompt, whole, (text,) in zip(prompts, wholes, texts, strict=True):
        batch = their_tokenizer(prompt, return_tensors="pt")
        with torch.no_grad():
            ids = reference.generate(
                **batch,
                max_new_tokens=STEPS,
                min_new_tokens=STEPS,
                bad_words_ids=[[i] for i in forbidden],
                do_sample=False,
                stop_strings=stops,
                tokenizer=their_tokenizer,
            )
        assert list(text.token_ids) == ids[0, batch["input_ids"].shape[1] :].tolist()
        assert text.ended and len(text.token_ids) < STEPS == len(whole.token_ids)
        assert whole.text.startswith(text.text) and not any(stop in text.text for stop in stops)


@pytest.mark.parametrize("pair", ["gpt", "pegasus"], indirect=True)
def test_compiled_it_is_the_same(pair):
    tokens, _, _ = ours(pair, Beam(4), jit_compile=True)
    np.testing.assert_array_equal(tokens[:, 0], theirs(pair, num_beams=4)[0])


@pytest.mark.filterwarnings("ignore:Recommended")
def test_texts_in_texts_out(english, pair_of_models, tmp_path):  # noqa: F811
    """A whole folder, as `transformers` uses it by its own settings."""
    tokenizer = MarianTokenizer(*pair_of_models)
    fields = SIZES | {"vocabulary_size": tokenizer.vocabulary_size, "max_length": 64}
    pad, end = tokenizer.pad_token_id, tokenizer.token_id("</s>")
    config = TransformerConfig(**fields, pad_token_id=pad, start_token_id=pad, end_token_id=end)
    model = build_model(config, "sequence_to_sequence")
    save_model(model, tmp_path, tokenizer=tokenizer)
    texts = [text for text in english if len(text) < 40][:20]
    ours = Translator(
        load_model(tmp_path, "sequence_to_sequence"), load_tokenizer(tmp_path), max_new_tokens=9
    )
    found = [one.text for (one,) in ours(texts)]
    reference = transformers.AutoModelForSeq2SeqLM.from_pretrained(tmp_path).eval()
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    batch = theirs(texts, return_tensors="pt", padding=True)
    with torch.no_grad():
        ids = reference.generate(**batch, max_new_tokens=9)
    assert found == theirs.batch_decode(ids, skip_special_tokens=True)
    assert len({*found}) > 5
