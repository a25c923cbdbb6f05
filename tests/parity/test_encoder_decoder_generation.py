"""Translations of a small random Marian against those of `transformers`' `generate`."""

import numpy as np
import pytest
import tensorflow as tf

from tests.parity.compare import near
from tests.text.test_marian import KOREAN, english, pair_of_models  # noqa: F401  fixtures
from tfnlp.checkpoints import load_model, save_model
from tfnlp.generation import Beam, Constraints, Greedy, Translator, decoder_of
from tfnlp.generation.search_algorithms import SearchSettings, search
from tfnlp.models import TransformerConfig, build_model
from tfnlp.text import load_tokenizer, train_tokenizer
from tfnlp.text.marian import MarianTokenizer

torch = pytest.importorskip("torch", reason="parity needs tfnlp[parity]")
transformers = pytest.importorskip("transformers", reason="parity needs tfnlp[parity]")

V, BATCH, WIDTH, STEPS = 60, 100, 9, 14
END, PAD = 0, 59
RULES = {"repetition_penalty": 1.3, "no_repeat_ngram_size": 2, "min_new_tokens": 3}
WORDS = ((5,), (8, 9), (1, 2, 3), (END, 4))
# As the folders of Marian say of themselves.
OWN = {"forbidden": ((PAD,),), "forced_last": END, "renormalize": True}


@pytest.fixture(scope="module", params=["marian", "pegasus"])
def pair(request, sources, tmp_path_factory):
    config = TransformerConfig(
        vocabulary_size=V,
        num_layers=2,
        num_heads=2,
        hidden_dim=16,
        intermediate_dim=32,
        max_length=40,
        activation="silu",
        initializer_range=0.6,
        norm_first=request.param == "pegasus",
        output_bias=True,
        pad_token_id=PAD,
        start_token_id=PAD,
        end_token_id=END,
    )
    model = build_model(config, "sequence_to_sequence")
    rng = np.random.default_rng(0)
    model.set_weights([rng.normal(size=w.shape, scale=0.6) for w in model.get_weights()])
    # The token that is written most takes the place of the end.
    written, _, _ = ours(model, sources, Greedy())
    often = np.bincount(written[:, 0, :3].ravel(), minlength=V).argmax()
    order = np.arange(V)
    order[[END, often]] = often, END
    for variable in (model.get_layer("embeddings").token_table, model.get_layer("lm_bias").bias):
        variable.assign(variable.numpy()[order])
    folder = tmp_path_factory.mktemp("model")
    save_model(model, folder)
    return model, transformers.AutoModelForSeq2SeqLM.from_pretrained(folder).eval()


@pytest.fixture(scope="module")
def sources():
    """Sources of 1 to WIDTH tokens, padded at the right."""
    rng = np.random.default_rng(0)
    ids = rng.integers(10, PAD, (BATCH, WIDTH))
    mask = np.arange(WIDTH) < rng.integers(1, WIDTH + 1, (BATCH, 1))
    return np.where(mask, ids, PAD).astype("int32"), mask.astype("int32")


def ours(model, sources, how, constraints=None, jit_compile=False):
    decoder, constraints = decoder_of(model), constraints or Constraints(**OWN)

    @tf.function(autograph=False, jit_compile=jit_compile)
    def run(ids, mask):
        draws = tf.zeros((BATCH, STEPS))
        settings = SearchSettings(how, constraints, STEPS, END, PAD)
        return search(decoder, ids, mask, draws, settings)

    return [x.numpy() for x in run(*map(tf.constant, sources))]


def theirs(model, sources, **how):
    """Token ids after the first, filled up with PAD, and scores of beam search."""
    ids, mask = (torch.tensor(x).long() for x in sources)
    with torch.no_grad():
        found = model.generate(
            ids,
            attention_mask=mask,
            max_new_tokens=STEPS,
            do_sample=False,
            return_dict_in_generate=True,
            output_scores=True,
            **how,
        )
    tokens = found.sequences[:, 1:].numpy()
    full = np.full((len(tokens), STEPS), PAD)
    full[:, : tokens.shape[1]] = tokens
    return full, getattr(found, "sequences_scores", None)


def words(*rows):
    return {"bad_words_ids": [list(row) for row in (*rows, (PAD,))]}


@pytest.mark.parametrize(
    ("constraints", "settings"),
    [
        ({}, {}),
        ({"repetition_penalty": 1.3, "no_repeat_ngram_size": 2}, RULES | {"min_new_tokens": 0}),
        (RULES | {"forbidden": (*WORDS, PAD), "forced_first": 11}, RULES | words(*WORDS)),
    ],
    ids=["plain", "no repeats", "constrained"],
)
def test_greedy(pair, sources, constraints, settings):
    model, reference = pair
    forced = {"forced_bos_token_id": 11} if "forced_first" in constraints else {}
    tokens, lengths, _ = ours(model, sources, Greedy(), Constraints(**OWN | constraints))
    expected, _ = theirs(reference, sources, num_beams=1, **settings, **forced)
    np.testing.assert_array_equal(tokens[:, 0], expected)
    np.testing.assert_array_equal(lengths[:, 0], (expected != PAD).sum(axis=1))
    assert (lengths < STEPS).sum() > 10


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
            Beam(4, length_penalty=0.2, best=4),
            RULES | {"forbidden": (*WORDS, PAD)},
            RULES | words(*WORDS) | {"length_penalty": 0.2, "num_return_sequences": 4},
        ),
    ],
    ids=["plain", "early", "constrained"],
)
def test_beam_search_of_100_sentences(pair, sources, beam, constraints, settings):
    model, reference = pair
    found = ours(model, sources, beam, Constraints(**OWN | constraints))
    tokens, lengths, scores = found
    expected, expected_scores = theirs(reference, sources, num_beams=4, **settings)
    np.testing.assert_array_equal(tokens.reshape(-1, STEPS), expected)
    near(scores.ravel(), expected_scores, 1e-4)
    assert (lengths < STEPS).sum() > 10  # some have ended before


@pytest.mark.parametrize("pair", ["pegasus"], indirect=True)
def test_compiled_it_is_the_same(pair, sources):
    model, reference = pair
    tokens, _, _ = ours(model, sources, Beam(4), jit_compile=True)
    np.testing.assert_array_equal(tokens[:, 0], theirs(reference, sources, num_beams=4)[0])


@pytest.mark.filterwarnings("ignore:Recommended")
@pytest.mark.parametrize("kind", ["one model of both languages", "a pair"])
def test_texts_in_texts_out(kind, english, pair_of_models, tmp_path):  # noqa: F811
    """A whole folder, as `transformers` uses it by its own settings."""
    if kind == "a pair":
        tokenizer = MarianTokenizer(*pair_of_models)
    else:
        tokenizer, _ = train_tokenizer([*english, *KOREAN], "unigram", 300, "marian")
    config = TransformerConfig(
        vocabulary_size=tokenizer.vocabulary_size,
        num_layers=1,
        num_heads=2,
        hidden_dim=16,
        intermediate_dim=32,
        max_length=64,
        initializer_range=0.6,
        pad_token_id=tokenizer.pad_token_id,
        start_token_id=tokenizer.pad_token_id,
        end_token_id=tokenizer.token_id("</s>"),
    )
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
