"""The methods by name: each loss is the paper's, as NumPy counts it text by text."""

import dataclasses
import functools

import keras
import numpy as np
import pytest
from keras import ops

from distill.learning.distances import (
    cosine_distance,
    squared_error,
)
from distill.learning.distiller import Distiller
from distill.learning.methods import METHODS, make_terms, soft_label_terms
from distill.learning.terms import Term, TermsLoss
from recipes.distillation_flags import METHOD_NAMES
from tfnlp.models import AlbertConfig, Gpt2Config, build_model
from tfnlp.tasks import Classification, Regression
from tfnlp.utils.errors import InputError

TASK = Classification(["a", "b"])
ASKED = {"hidden_states": True, "attention_scores": True, "attention_projections": True}
# What a text of 6 tokens may see: all, 4 and 1 of them.
LENGTHS = (6, 4, 1)


@pytest.fixture(scope="module")
def pair(tiny_config):
    """A teacher of 3 layers of width 32 with 4 heads, and a student of 2 of width 16 with 4."""
    keras.utils.set_random_seed(0)
    large = dataclasses.replace(tiny_config, dropout=0.0, attention_dropout=0.0)
    small = dataclasses.replace(large, num_layers=2, hidden_dim=16)
    return [build_model(config, "classifier", 2, **ASKED) for config in (large, small)]


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


def shown(terms, pair, inputs):
    """The losses by name, without the labels', and the whole one of batch and student."""
    teacher, student = pair
    distiller = Distiller(student, TASK, terms, teacher, hard_label_weight=0.0)
    labels = np.array([0, 1, 1])
    loss = distiller.compute_loss(inputs, labels, student(inputs))
    found = {k: float(v) for k, v in distiller.get_metrics_result().items()}
    del found["hard_label_loss"]
    return found, float(loss)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def divergence(a, b):
    p, q = softmax(a), softmax(b)
    return np.sum(p * np.log(p / q), -1)


def of_texts(errors, *tensors):
    """The mean of `errors(*real parts)`, one of each real token, over all texts."""
    return np.mean(
        [
            e
            for row, n in enumerate(LENGTHS)
            for e in np.ravel(errors(*(x[row] for x in tensors), n))
        ]
    )


def relations(x, heads, n):
    """The real scores (heads, n, n) of x (N, L, H) with itself."""
    x = x[:, :n].transpose(1, 0, 2).reshape(n, heads, -1).transpose(1, 0, 2)
    return x @ x.transpose(0, 2, 1) / np.sqrt(x.shape[-1])


def soft_labels(outputs, temperature):
    a, b = (x["logits"] / temperature for x in outputs)
    return temperature**2 * divergence(a, b).mean()


def test_minilm_is_attention_and_value_relations_of_the_last_layers(pair, inputs, outputs):
    found, loss = shown(METHODS["minilm"](*pair, TASK), pair, inputs)
    (a, b), (v, w) = ([x[name][-1] for x in outputs] for name in ("attention_scores", "values"))
    expected = {
        "soft_label_loss": soft_labels(outputs, 2.0),
        "attention_loss": of_texts(
            lambda a, b, n: divergence(a[:, :n, :n], b[:, :n, :n]).mean(0), a, b
        ),
        "value_relation_loss": of_texts(
            lambda v, w, n: divergence(relations(v, 4, n), relations(w, 4, n)).mean(0), v, w
        ),
    }
    assert found == pytest.approx(expected, rel=1e-4)
    assert loss == pytest.approx(np.dot([0.5, 1, 1], list(expected.values())), rel=1e-4)
    assert min(expected.values()) > 1e-3


@pytest.mark.parametrize("heads", [None, 8, 2])
def test_minilm_v2_is_relations_by_any_number_of_heads(heads, pair, inputs, outputs):
    terms = METHODS["minilm_v2"](*pair, relation_heads=heads, teacher_layer=1)
    found, loss = shown(terms, pair, inputs)
    expected = {}
    for name in ("queries", "keys", "values"):
        a, b = outputs[0][name][1], outputs[1][name][1]
        expected[f"{name[:-1].replace('querie', 'query')}_relation_loss"] = of_texts(
            lambda a, b, n: divergence(
                relations(a, heads or 4, n), relations(b, heads or 4, n)
            ).mean(0),
            a,
            b,
        )
    assert found == pytest.approx(expected, rel=1e-4)
    assert loss == pytest.approx(sum(expected.values()), rel=1e-4)


def test_pkd_is_squared_errors_of_first_tokens_of_length_1(pair, inputs, outputs):
    terms = METHODS["pkd"](*pair, TASK, layer_map=[0, 2])
    found, loss = shown(terms, pair, inputs)
    a = outputs[0]["hidden_states"][1][:, 0]
    b = outputs[1]["hidden_states"][1][:, 0] @ terms[1].projection.kernel.numpy()
    a, b = (x / np.linalg.norm(x, axis=-1, keepdims=True) for x in (a, b))
    expected = {
        "soft_label_loss": soft_labels(outputs, 10.0),
        "text_state_loss": np.mean((a - b) ** 2),
    }
    assert found == pytest.approx(expected, rel=1e-4)
    assert loss == pytest.approx(np.dot([0.5, 100], list(expected.values())), rel=1e-4)
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


def test_tinybert_is_the_sum_over_layers_with_projections(pair, inputs, outputs):
    terms = METHODS["tinybert"](*pair, TASK, layer_map=[1, 2], attention_weight=0.5)
    found, loss = shown(terms, pair, inputs)
    kernels = {term.name: term.projection.kernel.numpy() for term in terms if term.projection}
    (h, g), (s, r) = ([x[n] for x in outputs] for n in ("hidden_states", "attention_scores"))

    def state_error(i, j, name):
        def error(a, b, n):
            return np.mean((a[:n] - b[:n] @ kernels[name]) ** 2, -1)

        return of_texts(error, h[i], g[j])

    def score_error(i, j):
        return of_texts(lambda a, b, n: (a[:, :n, :n] - b[:, :n, :n]) ** 2, s[i], r[j])

    states = [state_error(2, 1, "hidden_state"), state_error(3, 2, "hidden_state")]
    scores = [score_error(1, 0), score_error(2, 1)]
    expected = {
        "soft_label_loss": soft_labels(outputs, 1.0),
        "embedding_loss": state_error(0, 0, "embedding"),
        "hidden_state_loss": np.mean(states),
        "attention_score_loss": np.mean(scores),
    }
    assert found == pytest.approx(expected, rel=1e-4)
    parts = [expected["soft_label_loss"], expected["embedding_loss"], sum(states), sum(scores)]
    assert loss == pytest.approx(np.dot([1, 1, 1, 0.5], parts), rel=1e-4)
    # One projection for all layers, one for the embeddings.
    assert len({id(term.projection) for term in terms if term.projection}) == 2


def test_distilbert_is_soft_labels_and_cosines(pair, inputs, outputs):
    terms = METHODS["distilbert"](*pair, TASK)
    found, loss = shown(terms, pair, inputs)
    kernel = terms[1].projection.kernel.numpy()

    def error(a, b, n):
        a, b = a[:n], b[:n] @ kernel
        return 1 - np.sum(a * b, -1) / np.linalg.norm(a, axis=-1) / np.linalg.norm(b, axis=-1)

    cosine = of_texts(error, *(x["hidden_states"][-1] for x in outputs))
    expected = {"soft_label_loss": soft_labels(outputs, 2.0), "cosine_loss": cosine}
    assert found == pytest.approx(expected, rel=1e-4)
    assert loss == pytest.approx(5 * expected["soft_label_loss"] + cosine, rel=1e-4)


def test_a_shared_and_factorized_student_of_other_heads_learns(pair, tiny_config, inputs):
    """Half precision gives finite losses and gradients too."""
    teacher, _ = pair
    keras.config.set_dtype_policy("mixed_float16")
    sizes = {"num_layers": 2, "num_heads": 2, "hidden_dim": 24, "intermediate_dim": 32}
    config = AlbertConfig(tiny_config.vocabulary_size, **sizes, embedding_dim=8, max_length=48)
    student = build_model(config, "classifier", 2, **ASKED)
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


def test_methods_that_do_not_fit_are_refused(pair, tiny_config):
    teacher, student = pair
    plain = build_model(tiny_config, "classifier", 2)
    heads = dataclasses.replace(tiny_config, num_heads=2)
    two = build_model(heads, "classifier", 2, **ASKED)
    sizes = {"num_layers": 2, "num_heads": 4, "hidden_dim": 16, "intermediate_dim": 32}
    gpt = build_model(Gpt2Config(tiny_config.vocabulary_size, **sizes), "classifier", 2, **ASKED)
    unprojected = [Term(("hidden_states", 0), ("hidden_states", 0), squared_error)]
    for models, make, message in [
        ((teacher, two), "minilm", "the teacher has 4 heads and the student 2; give the stud"),
        ((teacher, student), functools.partial(v2, 3), "relation_heads=3 does not divide a width"),
        (
            (teacher, gpt),
            "minilm",
            "The teacher's tokens see all ones and the student's earlier, ",
        ),
        (
            (plain, student),
            "minilm_v2",
            "read queries -1, which the teacher does not give; build it wi",
        ),
        (
            (teacher, plain),
            "distilbert",
            "read hidden_states -1, which the student does not give; b",
        ),
        (
            (teacher, student),
            lambda *_: unprojected,
            "the teacher's is 32 wide and the student's 16; g",
        ),
        (
            (teacher, student),
            lambda *_: [Term("states", "logits", np.add)],
            "read states, which the te",
        ),
        (
            (teacher, student),
            lambda *_: [Term("logits", "logits", broken)],
            "of the student: no such",
        ),
        (
            (teacher, student),
            lambda *_: [Term("logits", "logits", lambda t, s, mask: ops.mean(ops.square(t - s)))],
            "The distance of the term 'logits' has 0 axes; return a number for each text",
        ),
        (
            (teacher, teacher),
            lambda *_: [Term("sequence_output", "pooled_output", cosine_distance)],
            "the teacher's has 3 axes and the student's 2; name tensors of one kind",
        ),
    ]:
        if isinstance(make, str):
            make = METHODS[make]
        with pytest.raises(InputError, match=message) as error:
            Distiller(models[1], TASK, make(*models), models[0])
        assert "\n" not in str(error.value)
    shallow = build_model(dataclasses.replace(tiny_config, num_layers=1), "classifier", 2, **ASKED)
    with pytest.raises(InputError, match="method=pkd compares all layers of the student but its"):
        make_terms("pkd", teacher, shallow, TASK)
    with pytest.raises(ValueError, match=r"^weight=-1 of 'logits' must be at least 0"):
        Term("logits", "logits", squared_error, -1)
    assert tuple(METHODS) == METHOD_NAMES
    with pytest.raises(InputError, match="method=lora is unknown; use one of logits, dist"):
        make_terms("lora", teacher, student)
    with pytest.raises(
        InputError, match=r"cosine_weight=1 has no effect with method=pkd, which ta"
    ):
        make_terms("pkd", teacher, student, cosine_weight=1, temperature=None)
    for task, weight in ((Regression(), None), (TASK, 0.0), (None, None)):
        given = {"temperature": 4.0, "soft_label_weight": weight}
        with pytest.raises(InputError, match=r"temperature=4\.0 has no effect without soft lab"):
            make_terms("tinybert", teacher, student, task, **given)
    assert make_terms("pkd", teacher, student, TASK, temperature=4.0)[0].temperature == 4.0
    with pytest.raises(InputError, match=r"layer_map=\[0, 3\] names layer 3"):
        make_terms("tinybert", teacher, student, layer_map=[0, 3])
    with pytest.raises(InputError, match="layer_map=middle is unknown; use uniform, last, "):
        make_terms("tinybert", teacher, student, layer_map="middle")


def v2(heads, teacher, student):
    return METHODS["minilm_v2"](teacher, student, relation_heads=heads)


def broken(teacher, student, padding_mask):
    raise ValueError("no such error\nand more")


def test_weights_and_temperatures_follow_the_optimizers_steps():
    rng = np.random.default_rng(0)
    x, labels = rng.normal(size=(4, 3)).astype("float32"), np.array([0, 1, 1, 0])

    def model():
        inputs = keras.Input((3,))
        return keras.Model(inputs, {"logits": keras.layers.Dense(2)(inputs)})

    teacher, student = model(), model()
    decay = keras.optimizers.schedules.PolynomialDecay(4.0, 3, 1.0)  # 4, 3, 2, 1
    terms = soft_label_terms(TASK, temperature=decay, weight=lambda step: 0.5 * step)
    with pytest.raises(ValueError, match="follows a schedule, which needs the step"):
        TermsLoss(terms).compute_loss(teacher(x), student(x))
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
    with pytest.raises(ValueError, match="temperature=0 must be above 0"):
        soft_label_terms(TASK, temperature=0)
