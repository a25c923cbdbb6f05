"""The methods by name: each loss is the paper's, as NumPy counts it text by text."""

import dataclasses

import keras
import numpy as np
import pytest

from distill.learning.distiller import Distiller
from distill.learning.methods import METHODS, make_terms, soft_label_terms
from distill.learning.terms import check_terms
from recipes.flags.distillation_flags import METHOD_NAMES
from tests.distill.learning.test_terms import divergence
from tfnlp.models import AlbertConfig, Gpt2Config, build_model
from tfnlp.tasks import Classification
from tfnlp.utils.errors import InputError

TASK = Classification(["a", "b"])
OUTPUTS = {"hidden_states": True, "attention_scores": True, "attention_projections": True}
# What a text of 6 tokens may see: all, 4 and 1 of them.
LENGTHS = (6, 4, 1)


@pytest.fixture(scope="module")
def pair(tiny_config):
    """A teacher of 3 layers of width 32 with 4 heads, and a student of 2 of width 16 with 4."""
    keras.utils.set_random_seed(0)
    large = dataclasses.replace(tiny_config, dropout=0.0, attention_dropout=0.0)
    small = dataclasses.replace(large, num_layers=2, hidden_dim=16)
    return [build_model(config, "classifier", 2, **OUTPUTS) for config in (large, small)]


@pytest.fixture(scope="module")
def inputs(tiny_config):
    rng = np.random.default_rng(0)
    mask = (np.arange(6) < np.array(LENGTHS)[:, None]).astype("int32")
    ids = rng.integers(5, tiny_config.vocabulary_size, mask.shape).astype("int32")
    return {"token_ids": ids * mask, "segment_ids": 0 * ids, "padding_mask": mask}


@pytest.fixture(scope="module")
def outputs(pair, inputs):
    """What both give, as NumPy has it."""
    return [keras.tree.map_structure(np.asarray, model(inputs)) for model in pair]


@pytest.fixture
def compare(pair, inputs):
    """Assert the losses of terms by name, and their sum by the weights of these."""
    teacher, student = pair

    def compare(terms, expected, weights):
        distiller = Distiller(student, TASK, terms, teacher, hard_label_weight=0.0)
        loss = distiller.compute_loss(inputs, np.array([0, 1, 1]), student(inputs))
        found = {name: float(value) for name, value in distiller.get_metrics_result().items()}
        del found["hard_label_loss"]
        assert found == pytest.approx({f"{k}_loss": v for k, v in expected.items()}, rel=1e-4)
        assert float(loss) == pytest.approx(np.dot(weights, [*expected.values()]), rel=1e-4)
        assert min(expected.values()) > 1e-3

    return compare


def of_texts(errors, *tensors):
    """The mean of `errors(*tensors of a text, length)`, one of each real token, over all texts."""
    rows = [errors(*(x[row] for x in tensors), n) for row, n in enumerate(LENGTHS)]
    return np.mean(np.concatenate([np.ravel(errors) for errors in rows]))


def relations(x, heads, n):
    """The real scores (heads, n, n) of x (N, L, H) with itself."""
    x = x[:, :n].transpose(1, 0, 2).reshape(n, heads, -1).transpose(1, 0, 2)
    return x @ x.transpose(0, 2, 1) / np.sqrt(x.shape[-1])


def soft_labels(outputs, temperature):
    a, b = (x["logits"] / temperature for x in outputs)
    return temperature**2 * divergence(a, b).mean()


def attention_error(a, b, n):
    return divergence(a[:, :n, :n], b[:, :n, :n]).mean(0)


def relation_error(heads):
    return lambda a, b, n: divergence(relations(a, heads, n), relations(b, heads, n)).mean(0)


def test_minilm_is_attention_and_value_relations_of_the_last_layers(pair, outputs, compare):
    scores, values = ([x[name][-1] for x in outputs] for name in ("attention_scores", "values"))
    expected = {
        "soft_label": soft_labels(outputs, 2.0),
        "attention": of_texts(attention_error, *scores),
        "value_relation": of_texts(relation_error(4), *values),
    }
    compare(METHODS["minilm"](*pair, TASK), expected, [0.5, 1, 1])


@pytest.mark.parametrize("heads", [None, 8])
def test_minilm_v2_is_relations_by_any_number_of_heads(heads, pair, outputs, compare):
    names = {"query": "queries", "key": "keys", "value": "values"}
    expected = {
        f"{name}_relation": of_texts(relation_error(heads or 4), *(x[tensors][1] for x in outputs))
        for name, tensors in names.items()
    }
    terms = METHODS["minilm_v2"](*pair, relation_heads=heads, teacher_layer=1)
    compare(terms, expected, [1, 1, 1])


def test_pkd_is_squared_errors_of_first_tokens_of_length_1(pair, outputs, compare):
    terms = METHODS["pkd"](*pair, TASK, layer_map=[0, 2])
    a = outputs[0]["hidden_states"][1][:, 0]
    b = outputs[1]["hidden_states"][1][:, 0] @ terms[1].projection.kernel.numpy()
    a, b = (x / np.linalg.norm(x, axis=-1, keepdims=True) for x in (a, b))
    expected = {"soft_label": soft_labels(outputs, 10.0), "text_state": np.mean((a - b) ** 2)}
    compare(terms, expected, [0.5, 100])
    # Skip and Last of a teacher of 12 layers (numbers of outputs), Sun et al. 2019, section 3.
    deep, half = (stacked(n) for n in (12, 6))
    for name, layers in (("uniform", [2, 4, 6, 8, 10]), ("last", [7, 8, 9, 10, 11])):
        terms = METHODS["pkd"](deep, half, layer_map=name)
        assert [term.teacher[1] for term in terms] == layers
        assert [term.student[1] for term in terms] == [1, 2, 3, 4, 5]


def stacked(layers):
    """A model of hidden states and scores without weights."""
    x = keras.Input((None, 4))
    scores = [x[:, None]] * layers
    return keras.Model(x, {"hidden_states": [x] * (layers + 1), "attention_scores": scores})


def test_tinybert_is_the_sum_over_layers_with_projections(pair, outputs, compare):
    terms = METHODS["tinybert"](*pair, TASK, layer_map=[1, 2], attention_weight=0.5)
    kernels = {term.name: term.projection.kernel.numpy() for term in terms if term.projection}
    (h, g), (s, r) = ([x[n] for x in outputs] for n in ("hidden_states", "attention_scores"))

    def state_error(i, j, name):
        def error(a, b, n):
            return np.mean((a[:n] - b[:n] @ kernels[name]) ** 2, -1)

        return of_texts(error, h[i], g[j])

    def score_error(i, j):
        return of_texts(lambda a, b, n: (a[:, :n, :n] - b[:, :n, :n]) ** 2, s[i], r[j])

    expected = {
        "soft_label": soft_labels(outputs, 1.0),
        "embedding": state_error(0, 0, "embedding"),
        "hidden_state": np.mean([state_error(t, s, "hidden_state") for t, s in ((2, 1), (3, 2))]),
        "attention_score": np.mean([score_error(1, 0), score_error(2, 1)]),
    }
    # The means of two layers are shown, their sums learned.
    compare(terms, expected, [1, 1, 2, 0.5 * 2])
    # One projection for all layers, one for the embeddings.
    assert len({id(term.projection) for term in terms if term.projection}) == 2


def test_distilbert_is_soft_labels_and_cosines(pair, outputs, compare):
    terms = METHODS["distilbert"](*pair, TASK)
    kernel = terms[1].projection.kernel.numpy()

    def error(a, b, n):
        a, b = a[:n], b[:n] @ kernel
        return 1 - np.sum(a * b, -1) / np.linalg.norm(a, axis=-1) / np.linalg.norm(b, axis=-1)

    cosine = of_texts(error, *(x["hidden_states"][-1] for x in outputs))
    compare(terms, {"soft_label": soft_labels(outputs, 2.0), "cosine": cosine}, [5, 1])


def test_a_shared_and_factorized_student_of_other_heads_learns(pair, tiny_config, inputs):
    """Half precision gives finite losses and gradients too."""
    teacher, _ = pair
    keras.config.set_dtype_policy("mixed_float16")
    sizes = {"num_layers": 2, "num_heads": 2, "hidden_dim": 24, "intermediate_dim": 32}
    config = AlbertConfig(tiny_config.vocabulary_size, **sizes, embedding_dim=8, max_length=48)
    student = build_model(config, "classifier", 2, **OUTPUTS)
    terms = [
        *make_terms("minilm_v2", teacher, student, TASK, relation_heads=8),
        *make_terms("tinybert", teacher, student, soft_label_weight=0.1),
        *make_terms("pkd", teacher, student),
        *make_terms("distilbert", teacher, student),
    ]
    distiller = Distiller(student, TASK, terms, teacher)
    optimizer = keras.optimizers.LossScaleOptimizer(keras.optimizers.Adam(1e-2), initial_scale=8.0)
    distiller.compile(optimizer, run_eagerly=True)  # a trace takes longer than these steps
    before = student.get_weights()
    history = distiller.fit(inputs, np.array([0, 1, 1]), epochs=3, batch_size=3, verbose=0).history
    # Relations, states, scores and cosines, the labels', and their sum.
    assert len(history) == 11
    assert np.isfinite(list(history.values())).all()
    assert history["loss"][-1] < history["loss"][0]
    assert all(np.isfinite(w).all() for w in student.get_weights())
    assert (
        max(np.abs(a - b).max() for a, b in zip(before, student.get_weights(), strict=True)) > 0.01
    )


def fit(method, teacher, student, **arguments):
    """Make the terms of a method and check them, as `Distillation` does."""
    check_terms(make_terms(method, teacher, student, TASK, **arguments), teacher, student)


def test_methods_that_do_not_fit_are_refused(pair, tiny_config):
    teacher, student = pair
    plain = build_model(tiny_config, "classifier", 2)
    two = build_model(dataclasses.replace(tiny_config, num_heads=2), "classifier", 2, **OUTPUTS)
    shallow = build_model(
        dataclasses.replace(tiny_config, num_layers=1), "classifier", 2, **OUTPUTS
    )
    sizes = {"num_layers": 2, "num_heads": 4, "hidden_dim": 16, "intermediate_dim": 32}
    gpt = build_model(Gpt2Config(tiny_config.vocabulary_size, **sizes), "classifier", 2, **OUTPUTS)
    for method, teacher_, student_, arguments, word in (
        ("minilm", teacher, two, {}, "as many"),
        ("minilm_v2", *pair, {"relation_heads": 3}, "relation_heads=3"),
        ("minilm", teacher, gpt, {}, "tokens see"),
        ("minilm_v2", plain, student, {}, "queries -1"),
        ("pkd", teacher, shallow, {}, "method=pkd"),
        ("lora", *pair, {}, "method=lora"),
        ("pkd", *pair, {"cosine_weight": 1}, "cosine_weight=1"),
        ("tinybert", *pair, {"layer_map": [0, 3]}, "layer_map=0,3"),
        ("tinybert", *pair, {"layer_map": "middle"}, "layer_map=middle"),
    ):
        with pytest.raises(InputError, match=word):
            fit(method, teacher_, student_, **arguments)
    assert tuple(METHODS) == METHOD_NAMES
    (term, *_) = make_terms("pkd", *pair, TASK, temperature=4.0, relation_heads=None)
    assert term.temperature == 4.0


def test_weights_and_temperatures_follow_the_optimizers_steps():
    rng = np.random.default_rng(0)
    x, labels = rng.normal(size=(4, 3)).astype("float32"), np.array([0, 1, 1, 0])

    def model():
        inputs = keras.Input((3,))
        return keras.Model(inputs, {"logits": keras.layers.Dense(2)(inputs)})

    teacher, student = model(), model()
    decay = keras.optimizers.schedules.PolynomialDecay(4.0, 3, 1.0)  # 4, 3, 2, 1
    terms = soft_label_terms(TASK, temperature=decay, weight=lambda step: 0.5 * step)
    distiller = Distiller(student, TASK, terms, teacher, hard_label_weight=0.0)
    distiller.compile(keras.optimizers.SGD(1e-2), jit_compile=False)
    for step in range(3):
        temperature = 4.0 - step
        a, b = (m(x)["logits"].numpy() / temperature for m in (teacher, student))
        due = temperature**2 * divergence(a, b).mean()
        found = distiller.train_on_batch(x, labels, return_dict=True)
        distiller.reset_metrics()
        assert float(found["soft_label_loss"]) == pytest.approx(due, rel=1e-4)
        assert float(found["loss"]) == pytest.approx(0.5 * step * due, rel=1e-4)
