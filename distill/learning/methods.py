"""Distillation methods by name: functions that return the `Term`s for a pair of models.

A method takes the teacher and the student, built with the outputs that it compares, and the `task`
whose outputs the soft labels are; without a task there are no soft labels. `layer_map` names for
each student layer the teacher's layer, see `distill.learning.layer_map`.

In the equations S is the student, T the teacher, g the layer map, E the embeddings' output and H
hidden states (B, L, D), A attention scores (B, N, L, L) and z logits. `hidden_states[0]` is E, so
layer m, counted from 0, has `hidden_states[m + 1]` and `attention_scores[m]`.
"""

import functools
import inspect

import keras

from distill.learning.distances import (
    attention_divergence,
    attention_score_error,
    cosine_distance,
    link_divergence,
    relation_divergence,
    similarity_error,
    squared_error,
    text_state_distance,
    vector_error,
)
from distill.learning.layer_map import resolve_layer_map
from distill.learning.terms import Term, read_tensor
from tfnlp.functional.links import LINKS
from tfnlp.tasks.kinds import kind_of_task
from tfnlp.utils.errors import InputError, unknown_name


def logits(
    teacher,
    student,
    task=None,
    layer_map="uniform",
    temperature=2.0,
    soft_label_weight=0.5,
    hidden_state_weight=0.0,
    attention_weight=0.0,
):
    """Return terms of soft labels (Hinton et al. 2015), and optionally of states and attention.

    States and attention are means over the layers. The embeddings' output counts as one more
    hidden state. All states share one projection.
    """
    terms = _soft_labels(task, temperature, soft_label_weight)
    if hidden_state_weight or attention_weight:
        layers = _layers(layer_map, teacher, student)
    if hidden_state_weight:
        weight = _scaled(hidden_state_weight, 1 / (len(layers) + 1))
        terms += hidden_state_terms(layers, make_projection(teacher, student), weight=weight)
    if attention_weight:
        weight = _scaled(attention_weight, 1 / len(layers))
        terms += attention_score_terms(layers, weight, _is_causal(teacher, student))
    return terms


def distilbert(
    teacher, student, task=None, temperature=2.0, soft_label_weight=5.0, cosine_weight=1.0
):
    """Return the terms of DistilBERT (Sanh et al. 2019, section 3): soft labels, and cosines.

    L = 5 T^2 KL(softmax(z^T / T) || softmax(z^S / T)) + 2 L_mlm + (1 - cos(H^S W, H^T)), of the
    last hidden states. L_mlm is the task's own loss, whose weight the caller gives. The paper's
    second distillation, in fine-tuning, is `logits`.
    """
    terms = _soft_labels(task, temperature, soft_label_weight)
    if cosine_weight:
        projection = make_projection(teacher, student)
        last = ("hidden_states", -1)
        options = {"projection": projection, "name": "cosine"}
        terms.append(Term(last, last, cosine_distance, cosine_weight, **options))
    return terms


def tinybert(
    teacher,
    student,
    task=None,
    layer_map="uniform",
    temperature=1.0,
    soft_label_weight=1.0,
    embedding_weight=1.0,
    hidden_state_weight=1.0,
    attention_weight=1.0,
):
    """Return the terms of TinyBERT (Jiao et al. 2020, eq. 6 to 11).

    L = L_pred + L_embd + sum over m of (L_hidn + L_attn). In its task stage L_pred comes after all
    others, see `distill.learning.split_phases`.
    """
    terms = _soft_labels(task, temperature, soft_label_weight)  # eq. 10, L_pred
    layers = _layers(layer_map, teacher, student)
    if embedding_weight:  # eq. 9, L_embd = MSE(E^S W_e, E^T)
        projection = make_projection(teacher, student, "embedding_projection", 0)
        terms += _state_terms([(0, 0)], embedding_weight, projection, "embedding")
    if hidden_state_weight:  # eq. 8, L_hidn = MSE(H^S_m W_h, H^T_g(m))
        projection = make_projection(teacher, student)
        terms += hidden_state_terms(layers, projection, False, hidden_state_weight)
    if attention_weight:  # eq. 7, L_attn = MSE(A^S_m, A^T_g(m))
        terms += attention_score_terms(layers, attention_weight, _is_causal(teacher, student))
    return terms


def minilm(
    teacher,
    student,
    task=None,
    temperature=2.0,
    soft_label_weight=0.5,
    attention_weight=1.0,
    relation_weight=1.0,
    teacher_layer=-1,
):
    """Return the terms of MiniLM (Wang et al. 2020, eq. 3 to 6).

    L = KL(softmax(A^T) || softmax(A^S)) + KL(softmax(VR^T) || softmax(VR^S)) of the last layer,
    with value relations VR = V V^T / sqrt(H). The student may have any number of layers and any
    width, but as many heads as the teacher.
    """
    terms = _soft_labels(task, temperature, soft_label_weight)
    causal = _is_causal(teacher, student)
    if attention_weight:  # eq. 3
        distance = functools.partial(attention_divergence, causal=causal)
        scores = [("attention_scores", layer) for layer in (teacher_layer, -1)]
        terms.append(Term(*scores, distance, attention_weight, name="attention"))
    if relation_weight:  # eq. 5
        distance = functools.partial(relation_divergence, causal=causal)
        values = [("values", layer) for layer in (teacher_layer, -1)]
        terms.append(Term(*values, distance, relation_weight, name="value_relation"))
    return terms


def minilm_v2(
    teacher,
    student,
    task=None,
    temperature=2.0,
    soft_label_weight=0.5,
    relation_weight=1.0,
    relation_heads=None,
    teacher_layer=-1,
):
    """Return the terms of MiniLMv2 (Wang et al. 2021, section 3).

    L = sum over X of KL(softmax(R_X^T) || softmax(R_X^S)) of one layer, with the relations
    R_X = X X^T / sqrt(H) of queries, of keys and of values.

    Args:
        relation_heads: the number of heads to split both into, which must divide both widths; the
            paper has 48 for a teacher of 12 heads. The teacher's heads where None.
        teacher_layer: the layer to learn from, counted from 0, or from the end if negative: the
            paper uses the last of 12, and the 21st of 24.
    """
    terms = _soft_labels(task, temperature, soft_label_weight)
    if relation_weight:
        queries = read_tensor(teacher, ("queries", teacher_layer), "teacher")
        heads, causal = relation_heads or queries.shape[1], _is_causal(teacher, student)
        distance = functools.partial(relation_divergence, relation_heads=heads, causal=causal)
        for output, name in (("queries", "query"), ("keys", "key"), ("values", "value")):
            tensors = (output, teacher_layer), (output, -1)
            terms.append(Term(*tensors, distance, relation_weight, name=f"{name}_relation"))
    return terms


def pkd(
    teacher,
    student,
    task=None,
    layer_map="uniform",
    temperature=10.0,
    soft_label_weight=0.5,
    hidden_state_weight=100.0,
):
    """Return the terms of patient knowledge distillation (Sun et al. 2019, eq. 7 and 8).

    L_pt = mean over m of MSE(h^S_m / |h^S_m|, h^T_g(m) / |h^T_g(m)|), with the state h of one
    token: the first, or the last of a family that pools there. The student's last layer learns
    from the soft labels alone. The paper's PKD-Skip is the layer map "uniform" (2, 4, 6, 8 and 10
    of 12, counted from 1), PKD-Last is "last" (7 to 11).

    Raises:
        InputError: if the student has one layer, so that no state is left to compare.
    """
    terms = _soft_labels(task, temperature, soft_label_weight)
    *layers, _ = _layers(layer_map, teacher, student)
    if hidden_state_weight:
        if not layers:
            raise InputError(
                "method=pkd compares all layers of the student but its last, and it has one "
                "alone; give it two or more, or take another method."
            )
        configs = _configs(teacher, student)
        tokens = tuple(config.pooling.token if config else "first" for config in configs)
        distance = functools.partial(text_state_distance, tokens=tokens)
        projection = make_projection(teacher, student)
        weight = _scaled(hidden_state_weight, 1 / len(layers))
        terms += _state_terms(_outputs_of(layers), weight, projection, "text_state", distance)
    return terms


METHODS = {f.__name__: f for f in (logits, distilbert, tinybert, minilm, minilm_v2, pkd)}


def make_terms(method, teacher, student, task=None, layer_map="uniform", **arguments):
    """Return the terms of a method by its name.

    Args:
        method: one of `METHODS`.
        teacher, student, task: as the method takes them.
        layer_map: as the method takes it; without effect on a method without layer maps.
        arguments: of the method; those that are None take its defaults.

    Raises:
        InputError: if the method is unknown or does not take an argument; and as the method does.
    """
    if method not in METHODS:
        raise unknown_name("method", method, METHODS)
    options = {name: value for name, value in arguments.items() if value is not None}
    parameters = inspect.signature(METHODS[method]).parameters
    for name, value in options.items():
        if name not in parameters:
            accepted = ", ".join(other for other in arguments if other in parameters)
            raise InputError(
                f"{name}={value} has no effect with method={method}, which takes {accepted}; "
                "leave it out."
            )
    if "layer_map" in parameters:
        options["layer_map"] = layer_map
    return METHODS[method](teacher, student, task, **options)


def soft_label_terms(task=None, temperature=2.0, weight=1.0):
    """Return terms for the teacher's predictions, one for each of the task's outputs.

    Their distance is the divergence of the task's link (`tfnlp.functional.links`), softened by the
    temperature. A regression has the squared error and vectors that of `vector_error`, both
    without temperature.

    Args:
        task: see `tfnlp.tasks`; None for classes.
        temperature: T, above 0, or a schedule.
        weight: of all together, or a schedule.
    """
    kind = kind_of_task(task)
    if kind.link is None:
        return [Term(x, x, vector_error, weight, name="vector") for x in kind.reads]
    distance, weight = link_divergence(LINKS[kind.link]), _scaled(weight, 1 / len(kind.reads))
    options = {"name": "soft_label", "at_labels": True}
    return [Term(x, x, distance, weight, temperature, **options) for x in kind.reads]


def similarity_terms(task, weight=1.0, dims=()):
    """Return terms of the cosines of a batch's texts with each other, for each vector of a task.

    Args:
        task: of vectors, see `tfnlp.tasks`.
        weight: a number or a schedule.
        dims: as in `similarity_error`.
    """
    distance = functools.partial(similarity_error, dims=tuple(dims))
    return [Term(x, x, distance, weight, name="similarity") for x in task.kind.reads]


def hidden_state_terms(layer_map, projection=None, embeddings=True, weight=1.0):
    """Return squared errors of hidden states by layer map.

    Jiao et al. 2020, 'TinyBERT', eq. 8 and 9: MSE(H^S W, H^T).

    Args:
        layer_map: for each student layer the teacher's, both counted from 0.
        projection: W, from the student's states to the teacher's width; or None.
        embeddings: whether the embeddings' outputs are compared too.
        weight: of each, or a schedule.
    """
    return _state_terms([(0, 0)] * embeddings + _outputs_of(layer_map), weight, projection)


def attention_score_terms(layer_map, weight=1.0, causal=False):
    """Return squared errors of attention scores before the softmax.

    Jiao et al. 2020, 'TinyBERT', eq. 7. `layer_map` and `weight` are as in `hidden_state_terms`.
    Pairs with padding have no weight, nor, if `causal` is true, pairs with a later token.
    """
    distance = functools.partial(attention_score_error, causal=causal)
    scores = [(("attention_scores", t), ("attention_scores", s)) for s, t in enumerate(layer_map)]
    return [Term(*pair, distance, weight, name="attention_score") for pair in scores]


def make_projection(teacher, student, name="hidden_state_projection", index=-1):
    """Build a trainable projection W, without bias, of hidden states to the teacher's width.

    Args:
        teacher, student: models that output hidden states.
        name: of the layer.
        index: of the hidden states whose widths count.

    Returns:
        A dense layer; None where the widths are equal.
    """
    states = ("hidden_states", index)
    width = read_tensor(teacher, states, "teacher").shape[-1]
    student_width = read_tensor(student, states, "student").shape[-1]
    if width == student_width:
        return None
    projection = keras.layers.Dense(width, use_bias=False, name=name)
    projection.build((None, None, student_width))
    return projection


def _soft_labels(task, temperature, weight):
    return soft_label_terms(task, temperature, weight) if task and weight else []


def _state_terms(pairs, weight, projection, name="hidden_state", distance=squared_error):
    """Return a term for each pair of numbers of the teacher's and the student's hidden states."""
    options = {"projection": projection, "name": name}
    return [
        Term(("hidden_states", t), ("hidden_states", s), distance, weight, **options)
        for t, s in pairs
    ]


def _outputs_of(layers):
    """Return pairs of numbers of hidden states, which count the embeddings' output too."""
    return [(t + 1, s + 1) for s, t in enumerate(layers)]


def _scaled(weight, factor):
    """Multiply a weight, a number or a schedule, by a factor."""
    return (lambda step: weight(step) * factor) if callable(weight) else weight * factor


def _configs(teacher, student):
    return [getattr(model, "text_config", None) for model in (teacher, student)]


def _is_causal(teacher, student):
    """Return whether attention is causal in both models.

    Raises:
        InputError: if it is causal in one of them only.
    """
    configs = _configs(teacher, student)
    causal = [getattr(config, "language_model", None) == "causal_lm" for config in configs]
    if causal[0] != causal[1]:
        raise InputError(
            f"The teacher's tokens see {'earlier' if causal[0] else 'all'} ones and the student's "
            f"{'earlier' if causal[1] else 'all'}, so that their attention cannot be compared; "
            "give a student of another family, or another method."
        )
    return causal[0]


def _layers(layer_map, teacher, student):
    """Return the layer map as a list; layers are counted by the configs, or else the outputs."""
    models = zip((teacher, student), _configs(teacher, student), strict=True)
    counts = [
        config.num_layers if config else len(model.output["attention_scores"])
        for model, config in models
    ]
    if not counts[1]:
        raise InputError(
            f"The student, a {student.name}, has no layers to compare; learn from soft labels "
            "alone, or give a student of another family."
        )
    return resolve_layer_map(layer_map, *counts)
