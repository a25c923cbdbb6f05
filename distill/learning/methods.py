"""Distillation methods by name: functions that return the `Term`s for a pair of models.

A method takes the teacher and the student, built with the outputs that it compares, and the `task`
whose outputs the soft labels are; without a task there are no soft labels. `layer_map` names for
each student layer the teacher's layer, see `distill.learning.layer_map`.
"""

import functools
import inspect

import keras

from distill.learning.distances import (
    POSITION_LOGITS,
    attention_error,
    class_error,
    cosine_error,
    position_error,
    relation_error,
    score_error,
    squared_error,
    text_state_error,
)
from distill.learning.layer_map import resolve_layer_map
from distill.learning.terms import Term, read_tensor, times
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
        layers = resolve_layer_map(layer_map, *_layers(teacher, student))
        terms += hidden_state_terms(
            layers, make_projection(teacher, student), weight=hidden_state_weight
        )
    if attention_weight:
        layers = resolve_layer_map(layer_map, *_layers(teacher, student))
        terms += attention_score_terms(layers, attention_weight, _is_causal(teacher, student))
    return terms


def distilbert(
    teacher, student, task=None, temperature=2.0, soft_label_weight=5.0, cosine_weight=1.0
):
    """Return the terms of DistilBERT (Sanh et al. 2019, section 3): soft labels, and cosines.

    The cosines compare the last hidden states. The third loss of the paper, masked tokens, is the
    task's own, with a weight of 2 there. The paper's second distillation, in fine-tuning, is
    `logits`.
    """
    terms = _soft_labels(task, temperature, soft_label_weight)
    if cosine_weight:
        tensor = ("hidden_states", -1)
        projection = make_projection(teacher, student)
        terms.append(Term(tensor, tensor, cosine_error, cosine_weight, None, projection, "cosine"))
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

    They compare embeddings, hidden states, attention scores and soft labels. Weights are for each
    layer; the paper sums over layers. In its task stage the soft labels come after all others, see
    `distill.learning.distill`.
    """
    terms = _soft_labels(task, temperature, soft_label_weight)
    layers = resolve_layer_map(layer_map, *_layers(teacher, student))
    if embedding_weight:
        tensor = ("hidden_states", 0)
        projection = make_projection(teacher, student, "embedding_projection", 0)
        terms.append(
            Term(tensor, tensor, squared_error, embedding_weight, None, projection, "embedding")
        )
    if hidden_state_weight:
        terms += hidden_state_terms(
            layers,
            make_projection(teacher, student),
            embeddings=False,
            weight=times(hidden_state_weight, len(layers)),
        )
    if attention_weight:
        weight = times(attention_weight, len(layers))
        terms += attention_score_terms(layers, weight, _is_causal(teacher, student))
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

    They compare attention and value relations of the last layer. The student may have any number
    of layers and any width, but as many heads as the teacher.
    """
    terms = _soft_labels(task, temperature, soft_label_weight)
    causal = _is_causal(teacher, student)
    if attention_weight:
        error = functools.partial(attention_error, causal=causal)
        terms.append(_last_layer("attention_scores", teacher_layer, error, attention_weight))
    if relation_weight:
        error = functools.partial(relation_error, causal=causal)
        terms.append(_last_layer("values", teacher_layer, error, relation_weight))
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

    They compare relations of queries, of keys and of values.

    Args:
        relation_heads: the number of heads to split both into, which must divide both widths; the
            paper has 48 for a teacher of 12 heads. The teacher's heads where None.
        teacher_layer: the layer to learn from, counted from 0, or from the end if negative: the
            paper uses the last of 12, and the 21st of 24.
    """
    terms = _soft_labels(task, temperature, soft_label_weight)
    if relation_weight:
        read = read_tensor(teacher, ("queries", teacher_layer), "teacher")
        heads, causal = relation_heads or read.shape[1], _is_causal(teacher, student)
        error = functools.partial(relation_error, relation_heads=heads, causal=causal)
        terms += [
            _last_layer(output, teacher_layer, error, relation_weight)
            for output in ("queries", "keys", "values")
        ]
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
    """Return the terms of patient knowledge distillation (Sun et al. 2019).

    They compare one token's states in most layers: the first, or the last of a family that pools
    there. The student's last layer learns from the soft labels alone. The paper's PKD-Skip is the
    layer map "uniform" (2, 4, 6, 8 and 10 of 12, counted from 1), PKD-Last is "last" (7 to 11).

    Raises:
        InputError: if the student has one layer, so that no state is left to compare.
    """
    terms = _soft_labels(task, temperature, soft_label_weight)
    *layers, _ = resolve_layer_map(layer_map, *_layers(teacher, student))
    if hidden_state_weight:
        if not layers:
            raise InputError(
                "method=pkd compares all layers of the student but its last, and it has one "
                "alone; give it two or more, or take another method."
            )
        configs = [getattr(model, "text_config", None) for model in (teacher, student)]
        tokens = tuple(config.pooling.token if config else "first" for config in configs)
        error = functools.partial(text_state_error, tokens=tokens)
        weight, projection = (
            times(hidden_state_weight, 1 / len(layers)),
            make_projection(teacher, student),
        )
        output = "hidden_states"
        terms += [
            Term((output, t + 1), (output, s + 1), error, weight, None, projection, "text_state")
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
    given = {name: value for name, value in arguments.items() if value is not None}
    taken = list(inspect.signature(function).parameters)
    for name, value in given.items():
        if name not in taken:
            own = [other for other in taken if other in arguments]
            raise InputError(
                f"{name}={value} has no effect with method={method}, which takes "
                f"{', '.join(own)}; leave it out."
            )
    if "layer_map" in taken:
        given["layer_map"] = layer_map
    terms = function(teacher, student, task, **given)
    if "temperature" in given and all(term.temperature is None for term in terms):
        raise InputError(
            f"temperature={given['temperature']} has no effect without soft labels of classes, of "
            "tokens or of places in a text: numbers have none; leave it out."
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

    def term(output):
        error, softened = class_error, temperature
        if task is not None and task.num_classes == 1:
            error, softened = squared_error, None
        elif output in POSITION_LOGITS:
            error = position_error
        own = times(weight, 1 / len(outputs))
        return Term(output, output, error, own, softened, name="soft_label", at_labels=True)

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
    # Output 0 is the embeddings', so layer i has output i + 1.
    pairs = [(0, 0)] * embeddings + [(t + 1, s + 1) for s, t in enumerate(layer_map)]
    own, output = times(weight, 1 / len(pairs)), "hidden_states"
    return [
        Term((output, t), (output, s), squared_error, own, None, projection, "hidden_state")
        for t, s in pairs
    ]


def attention_score_terms(layer_map, weight=1.0, causal=False):
    """Return squared errors of attention scores before the softmax, with equal weights.

    Jiao et al. 2020, 'TinyBERT', eq. 7. `layer_map` and `weight` are as in `hidden_state_terms`.
    Pairs with padding have no weight, nor, if `causal` is true, pairs with a later token.
    """
    own, output = times(weight, 1 / len(layer_map)), "attention_scores"
    error = functools.partial(score_error, causal=causal)
    return [
        Term((output, t), (output, s), error, own, name="attention_score")
        for s, t in enumerate(layer_map)
    ]


def make_projection(teacher, student, name="hidden_state_projection", index=-1):
    """Build a trainable projection, without bias, of hidden states to the teacher's width.

    Args:
        teacher, student: models that output hidden states.
        name: of the layer.
        index: of the hidden states whose widths count.

    Returns:
        A dense layer; None where the widths are equal.
    """
    models, tensor = {"teacher": teacher, "student": student}, ("hidden_states", index)
    width, own = (read_tensor(model, tensor, side).shape[-1] for side, model in models.items())
    if width == own:
        return None
    projection = keras.layers.Dense(width, use_bias=False, name=name)
    projection.build((None, None, own))
    return projection


def _soft_labels(task, temperature, weight):
    return soft_label_terms(task, temperature, weight) if task and weight else []


# Names of the logged losses by output of the last layer.
_SHOWN = {
    "attention_scores": "attention",
    "queries": "query_relation",
    "keys": "key_relation",
    "values": "value_relation",
}


def _last_layer(output, teacher_layer, error, weight):
    """Return a term of the student's last layer and one of the teacher's."""
    return Term((output, teacher_layer), (output, -1), error, weight, name=_SHOWN[output])


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


def _layers(*models):
    """Return the number of layers of each model, from its config or else its outputs."""
    counts = []
    for model, side in zip(models, ("teacher", "student"), strict=True):
        config = getattr(model, "text_config", None)
        if config is None:
            read_tensor(model, ("attention_scores", 0), side)
        counts.append(config.num_layers if config else len(model.output["attention_scores"]))
    return counts
