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
    POSITION_LOGITS,
    attention_divergence,
    attention_score_error,
    class_divergence,
    cosine_distance,
    position_divergence,
    relation_divergence,
    squared_error,
    text_state_distance,
)
from distill.learning.layer_map import resolve_layer_map
from distill.learning.terms import Term, read_tensor, scale_weight
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

    The embeddings' output counts as one more hidden state. All states share one projection.
    """
    terms = _soft_labels(task, temperature, soft_label_weight)
    if hidden_state_weight:
        layers = resolve_layer_map(layer_map, *_num_layers(teacher, student))
        projection = make_projection(teacher, student)
        terms += hidden_state_terms(layers, projection, weight=hidden_state_weight)
    if attention_weight:
        layers = resolve_layer_map(layer_map, *_num_layers(teacher, student))
        terms += attention_score_terms(layers, attention_weight, _is_causal(teacher, student))
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
        terms.append(
            Term(
                ("hidden_states", -1),
                ("hidden_states", -1),
                cosine_distance,
                cosine_weight,
                projection=projection,
                name="cosine",
            )
        )
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
    layers = resolve_layer_map(layer_map, *_num_layers(teacher, student))
    if embedding_weight:  # eq. 9, L_embd = MSE(E^S W_e, E^T)
        projection = make_projection(teacher, student, "embedding_projection", 0)
        terms.append(_state_term(0, 0, embedding_weight, projection, "embedding"))
    if hidden_state_weight:  # eq. 8, L_hidn = MSE(H^S_m W_h, H^T_g(m))
        projection = make_projection(teacher, student)
        terms += [
            _state_term(t + 1, s + 1, hidden_state_weight, projection)
            for s, t in enumerate(layers)
        ]
    if attention_weight:  # eq. 7, L_attn = MSE(A^S_m, A^T_g(m))
        causal = _is_causal(teacher, student)
        terms += [_score_term(t, s, attention_weight, causal) for s, t in enumerate(layers)]
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
    *layers, _ = resolve_layer_map(layer_map, *_num_layers(teacher, student))
    if hidden_state_weight:
        if not layers:
            raise InputError(
                "method=pkd compares all layers of the student but its last, and it has one "
                "alone; give it two or more, or take another method."
            )
        configs = [getattr(model, "text_config", None) for model in (teacher, student)]
        tokens = tuple(config.pooling.token if config else "first" for config in configs)
        distance = functools.partial(text_state_distance, tokens=tokens)
        projection = make_projection(teacher, student)
        weight = scale_weight(hidden_state_weight, 1 / len(layers))
        terms += [
            _state_term(t + 1, s + 1, weight, projection, name="text_state", distance=distance)
            for s, t in enumerate(layers)
        ]
    return terms


METHODS = {
    "logits": logits,
    "distilbert": distilbert,
    "tinybert": tinybert,
    "minilm": minilm,
    "minilm_v2": minilm_v2,
    "pkd": pkd,
}


def make_terms(method, teacher, student, task=None, layer_map="uniform", **arguments):
    """Return the terms of a method by its name.

    Args:
        method: one of `METHODS`.
        teacher, student, task: as the method takes them.
        layer_map: as the method takes it; without effect on a method without layer maps.
        arguments: of the method; those that are None take its defaults.

    Raises:
        InputError: if the method is unknown, does not take an argument, or has no term for a
            temperature; and as the method does.
    """
    if method not in METHODS:
        raise unknown_name("method", method, METHODS)
    function = METHODS[method]
    options = {name: value for name, value in arguments.items() if value is not None}
    parameters = list(inspect.signature(function).parameters)
    for name, value in options.items():
        if name not in parameters:
            accepted = [other for other in parameters if other in arguments]
            raise InputError(
                f"{name}={value} has no effect with method={method}, which takes "
                f"{', '.join(accepted)}; leave it out."
            )
    if "layer_map" in parameters:
        options["layer_map"] = layer_map
    terms = function(teacher, student, task, **options)
    if "temperature" in options and all(term.temperature is None for term in terms):
        raise InputError(
            f"temperature={options['temperature']} has no effect without soft labels of classes, "
            "tokens or positions: numbers have none; leave it out."
        )
    return terms


def soft_label_terms(task=None, temperature=2.0, weight=1.0):
    """Return terms for the teacher's predictions, one for each of the task's outputs.

    Classes (of texts, labelled tokens or choices) and positions have a divergence, softened by the
    temperature. A regression has the squared error, without temperature.

    Args:
        task: see `tfnlp.tasks`; None for classes.
        temperature: T, above 0, or a schedule.
        weight: of all together, or a schedule.
    """
    outputs = ("logits",) if task is None else task.outputs
    weight = scale_weight(weight, 1 / len(outputs))

    def term(output):
        distance = position_divergence if output in POSITION_LOGITS else class_divergence
        if task is not None and task.num_classes == 1:
            return Term(output, output, squared_error, weight, name="soft_label", at_labels=True)
        return Term(
            output, output, distance, weight, temperature, name="soft_label", at_labels=True
        )

    return [term(output) for output in outputs]


def hidden_state_terms(layer_map, projection=None, embeddings=True, weight=1.0):
    """Return squared errors of hidden states by layer map, with equal weights.

    Jiao et al. 2020, 'TinyBERT', eq. 8 and 9: MSE(H^S W, H^T).

    Args:
        layer_map: for each student layer the teacher's, both counted from 0.
        projection: W, from the student's states to the teacher's width; or None.
        embeddings: whether the embeddings' outputs are compared too.
        weight: of all together, or a schedule.
    """
    pairs = [(0, 0)] * embeddings + [(t + 1, s + 1) for s, t in enumerate(layer_map)]
    weight = scale_weight(weight, 1 / len(pairs))
    return [_state_term(t, s, weight, projection) for t, s in pairs]


def attention_score_terms(layer_map, weight=1.0, causal=False):
    """Return squared errors of attention scores before the softmax, with equal weights.

    Jiao et al. 2020, 'TinyBERT', eq. 7. `layer_map` and `weight` are as in `hidden_state_terms`.
    Pairs with padding have no weight, nor, if `causal` is true, pairs with a later token.
    """
    weight = scale_weight(weight, 1 / len(layer_map))
    return [_score_term(t, s, weight, causal) for s, t in enumerate(layer_map)]


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


def _state_term(t, s, weight, projection, name="hidden_state", distance=squared_error):
    """Return a term of number t of the teacher's hidden states and number s of the student's."""
    states = ("hidden_states", t), ("hidden_states", s)
    return Term(*states, distance, weight, projection=projection, name=name)


def _score_term(t, s, weight, causal):
    """Return a term of the attention scores of layer t of the teacher and s of the student."""
    scores = ("attention_scores", t), ("attention_scores", s)
    distance = functools.partial(attention_score_error, causal=causal)
    return Term(*scores, distance, weight, name="attention_score")


def _is_causal(teacher, student):
    """Return whether attention is causal in both models.

    Raises:
        InputError: if it is causal in one of them only.
    """
    configs = [getattr(model, "text_config", None) for model in (teacher, student)]
    causal = [getattr(config, "language_model", None) == "causal_lm" for config in configs]
    if causal[0] != causal[1]:
        raise InputError(
            f"The teacher's tokens see {'earlier' if causal[0] else 'all'} ones and the student's "
            f"{'earlier' if causal[1] else 'all'}, so that their attention cannot be compared; "
            "give a student of another family, or another method."
        )
    return causal[0]


def _num_layers(teacher, student):
    """Return the number of layers of each model, from its config or else its outputs."""
    counts = []
    for model, side in ((teacher, "teacher"), (student, "student")):
        config = getattr(model, "text_config", None)
        if config is None:
            read_tensor(model, ("attention_scores", 0), side)
        counts.append(config.num_layers if config else len(model.output["attention_scores"]))
    return counts
