"""Generation against `transformers`' `generate`, on the same weights and prompts."""

import numpy as np
import pytest
import tensorflow as tf

from tests.parity.compare import near
from tfnlp.checkpoints import save_model
from tfnlp.generation import Beam, CausalDecoder, Constraints, Greedy, Sample
from tfnlp.generation.sampling import draw, filtered
from tfnlp.generation.search_algorithms import SearchSettings, search
from tfnlp.models import Gpt2Config, GptConfig, build_model

torch = pytest.importorskip("torch", reason="parity needs tfnlp[parity]")
transformers = pytest.importorskip("transformers", reason="parity needs tfnlp[parity]")

V, BATCH, WIDTH, STEPS = 60, 100, 9, 14
END = 7  # in no prompt
RULES = {"repetition_penalty": 1.3, "no_repeat_ngram_size": 2, "min_new_tokens": 3}
WORDS = ((5,), (8, 9), (1, 2, 3), (END, 4))


@pytest.fixture(scope="module", params=[GptConfig, Gpt2Config], ids=["gpt", "gpt2"])
def pair(request, prompts, tmp_path_factory):
    config = request.param(
        vocabulary_size=V,
        num_layers=2,
        num_heads=2,
        hidden_dim=16,
        intermediate_dim=64,
        max_length=WIDTH + STEPS,
        initializer_range=0.6,
    )
    model = build_model(config, "causal_lm")
    # The token that is written most takes the place of the end.
    written, _, _ = ours(model, prompts, Greedy())
    often = np.bincount(written[:, 0, :3].ravel(), minlength=V).argmax()
    table = model.get_layer("embeddings").token_table
    order = np.arange(V)
    order[[END, often]] = often, END
    table.assign(table.numpy()[order])
    folder = tmp_path_factory.mktemp("model")
    save_model(model, folder)
    family = "GPT2LMHeadModel" if request.param is Gpt2Config else "OpenAIGPTLMHeadModel"
    return model, getattr(transformers, family).from_pretrained(folder).eval()


@pytest.fixture(scope="module")
def prompts():
    """Prompts of 1 to WIDTH tokens, padded at the left."""
    rng = np.random.default_rng(0)
    ids = rng.integers(10, V, (BATCH, WIDTH))
    mask = np.arange(WIDTH) >= WIDTH - rng.integers(1, WIDTH + 1, (BATCH, 1))
    return np.where(mask, ids, END).astype("int32"), mask.astype("int32")


def ours(model, prompts, how, constraints=None, jit_compile=False):
    decoder, constraints = CausalDecoder(model), constraints or Constraints()

    @tf.function(autograph=False, jit_compile=jit_compile)
    def run(ids, mask):
        draws = tf.zeros((BATCH, STEPS))
        settings = SearchSettings(how, constraints, STEPS, END, END)
        return search(decoder, ids, mask, draws, settings)

    return [x.numpy() for x in run(*map(tf.constant, prompts))]


def theirs(model, prompts, **how):
    """Token ids, filled up with END, and scores of beam search."""
    ids, mask = (torch.tensor(x).long() for x in prompts)
    with torch.no_grad():
        found = model.generate(
            ids,
            attention_mask=mask,
            max_new_tokens=STEPS,
            pad_token_id=END,
            eos_token_id=END,
            do_sample=False,
            return_dict_in_generate=True,
            output_scores=True,
            **how,
        )
    tokens = found.sequences[:, WIDTH:].numpy()
    full = np.full((len(tokens), STEPS), END)
    full[:, : tokens.shape[1]] = tokens
    return full, getattr(found, "sequences_scores", None)


@pytest.mark.parametrize(
    ("constraints", "settings"),
    [
        (Constraints(), {}),
        (
            Constraints(1.3, 2, WORDS, 3, forced_last=3),
            RULES | {"bad_words_ids": [list(w) for w in WORDS], "forced_eos_token_id": 3},
        ),
        (Constraints(0.8, 1), {"repetition_penalty": 0.8, "no_repeat_ngram_size": 1}),
    ],
    ids=["plain", "constrained", "no token twice"],
)
def test_greedy(pair, prompts, constraints, settings):
    model, reference = pair
    if constraints.no_repeat_ngram_size == 1:
        # Their padding counts as tokens that stand there: without any, the end may come.
        prompts = tuple(x[:, -1:] for x in prompts)
        prompts = tuple(np.repeat(x, WIDTH, axis=1) for x in prompts)
    tokens, lengths, _ = ours(model, prompts, Greedy(), constraints)
    expected, _ = theirs(reference, prompts, **settings)
    np.testing.assert_array_equal(tokens[:, 0], expected)
    written = expected != END
    np.testing.assert_array_equal(lengths[:, 0], np.minimum(written.sum(axis=1) + 1, STEPS))
    assert 10 < (lengths < STEPS).sum() < BATCH


@pytest.mark.parametrize(
    ("beam", "constraints", "settings"),
    [
        (Beam(4), Constraints(), {}),
        (
            Beam(4, length_penalty=0.6, early_stopping=True, best=3),
            Constraints(),
            {"length_penalty": 0.6, "early_stopping": True, "num_return_sequences": 3},
        ),
        (
            Beam(4, length_penalty=0.3, early_stopping="never"),
            Constraints(),
            {"length_penalty": 0.3, "early_stopping": "never"},
        ),
        (
            Beam(4, length_penalty=0.2, best=4),
            Constraints(1.3, 2, WORDS, 3),
            RULES
            | {"bad_words_ids": [list(w) for w in WORDS], "length_penalty": 0.2}
            | {"num_return_sequences": 4},
        ),
    ],
    ids=["plain", "early", "never", "constrained"],
)
def test_beam_search_of_100_prompts(pair, prompts, beam, constraints, settings):
    model, reference = pair
    tokens, lengths, scores = ours(model, prompts, beam, constraints)
    expected, expected_scores = theirs(reference, prompts, num_beams=4, **settings)
    np.testing.assert_array_equal(tokens.reshape(-1, STEPS), expected)
    near(scores.ravel(), expected_scores, 1e-4)
    assert (lengths < STEPS).sum() > 10  # some have ended before


@pytest.mark.parametrize("pair", [Gpt2Config], indirect=True)
def test_compiled_it_is_the_same(pair, prompts):
    model, reference = pair
    tokens, _, _ = ours(model, prompts, Beam(4), jit_compile=True)
    np.testing.assert_array_equal(tokens[:, 0], theirs(reference, prompts, num_beams=4)[0])


@pytest.mark.parametrize("temperature", [1.0, 0.7, 2.0])
@pytest.mark.parametrize("top_k", [0, 1, 7, V + 3])
@pytest.mark.parametrize("top_p", [1.0, 0.9, 0.3, 1e-3])
def test_distributions(temperature, top_k, top_p):
    scores = np.random.default_rng(0).normal(size=(50, V)).astype("float32") * 3
    expected = torch.tensor(scores)
    warpers = [transformers.TemperatureLogitsWarper(temperature)]
    if top_k:
        warpers.append(transformers.TopKLogitsWarper(top_k))
    if top_p < 1:
        warpers.append(transformers.TopPLogitsWarper(top_p))
    for warper in warpers:
        expected = warper(None, expected)
    found = filtered(tf.constant(scores), Sample(temperature, top_k, top_p))
    near(tf.nn.softmax(found), torch.softmax(expected, -1), 1e-6)


def test_draws_are_as_frequent_as_the_processors_say():
    draws, scores = 100_000, np.random.default_rng(0).normal(size=V).astype("float32")
    expected = transformers.TopKLogitsWarper(20)(None, torch.tensor(scores)[None] / 0.8)
    expected = transformers.TopPLogitsWarper(0.9)(None, expected)
    shares = torch.softmax(expected[0], -1).numpy().astype("float64")
    kept = filtered(tf.constant(scores), Sample(0.8, 20, 0.9))
    uniform = np.random.default_rng(1).random(draws, "float32")
    tokens = draw(tf.broadcast_to(kept, (draws, V)), tf.constant(uniform))
    found = np.bincount(tokens, minlength=V) / draws
    error = np.sqrt(shares * (1 - shares) / draws)
    assert 5 < (shares > 0).sum() < 20
    assert (np.abs(found - shares) <= 3 * error).all()
