"""Methods of distillation by name: functions that give lists of `Term`s for a pair of models.

A method takes the teacher and the student, built with the outputs that it compares, and the
`task` whose outputs the soft labels are; without one there are none. `layer_map` says for each
student layer which of the teacher's it learns from, see `distill.learning.layer_map`.
"""

import functools
import inspect

import keras

from distill.learning.errors import (
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
from distill.learning.losses import Term, read_tensor, times
from tfnlp.errors import InputError, unknown_name


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
    """Soft labels (Hinton et al. 2015); hidden states and attention scores beside them on request.

    The embeddings' outputs count as one hidden state more, and all go through one projection.
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
    """DistilBERT (Sanh et al. 2019, section 3): soft labels, and cosines of the last states.

    The third loss of the paper, masked tokens, is the task's own, of a weight of 2 there. The
    paper's second distillation, in fine-tuning, is `logits`.
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
    """TinyBERT (Jiao et al. 2020, eq. 6 to 11): embeddings, states and scores, and soft labels.

    The weights are of each layer, which the paper sums over. In its task stage the soft labels
    come after all others, see `distill.learning.distill`.
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
    """MiniLM (Wang et al. 2020, eq. 3 to 6): the last layer's attention and value relations.

    The student's layers and width are as they like, its heads as many as the teacher's.
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
    """MiniLMv2 (Wang et al. 2021, section 3): relations of queries, of keys and of values.

    Args:
        relation_heads: that both are split into, which must divide both widths; the paper has 48
            for a teacher of 12 heads. The teacher's heads where None.
        teacher_layer: that is learned from, counted from 0, or from the end below 0: the paper
            has the last one of 12, and the 21st of 24.
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
    """Patient knowledge distillation (Sun et al. 2019): the first token's states of most layers.

    The student's last layer learns from the soft labels alone. The paper's PKD-Skip is the layer
    map "uniform" (2, 4, 6, 8 and 10 of 12, counted from 1), PKD-Last is "last" (7 to 11).

    Raises:
        InputError: for a student of one layer, where no state is left to compare.
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
    """The terms of a method by its name.

    Args:
        method: one of `METHODS`.
        teacher, student, task: as it takes them.
        layer_map: likewise; without effect on a method that does not go by layers.
        arguments: its own; those that are None are left to it.

    Raises:
        InputError: for an unknown method, an argument that it does not take or a temperature of
            no term, and as it does.
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
    """What the teacher answers, as a task's outputs say it.

    A divergence of classes (of texts, of each labelled token, of the texts to choose from) or of
    positions, each softened by the temperature; of a number the squared error, which has none.

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
    """Squared errors of hidden states by layer map, each pair counting the same.

    Jiao et al. 2020, 'TinyBERT', eq. 8 and 9: MSE(H^S W, H^T).

    Args:
        layer_map: for each student layer the teacher's, both counted from 0.
        projection: W, of the student's states to the teacher's width; None for none.
        embeddings: whether the embeddings' outputs are compared too.
        weight: of all together, or a schedule.
    """
    # Output 0 is the embeddings', so a layer's output is one further.
    pairs = [(0, 0)] * embeddings + [(t + 1, s + 1) for s, t in enumerate(layer_map)]
    own, output = times(weight, 1 / len(pairs)), "hidden_states"
    return [
        Term((output, t), (output, s), squared_error, own, None, projection, "hidden_state")
        for t, s in pairs
    ]


def attention_score_terms(layer_map, weight=1.0, causal=False):
    """Squared errors of attention scores before the softmax by layer map, likewise.

    Jiao et al. 2020, 'TinyBERT', eq. 7; pairs with padding are left out, and where `causal` is
    true those with a later token.
    """
    own, output = times(weight, 1 / len(layer_map)), "attention_scores"
    error = functools.partial(score_error, causal=causal)
    return [
        Term((output, t), (output, s), error, own, name="attention_score")
        for s, t in enumerate(layer_map)
    ]


def make_projection(teacher, student, name="hidden_state_projection", index=-1):
    """A learned projection, without bias, of the student's hidden states to the teacher's width.

    Args:
        teacher, student: models that give hidden states.
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


# What is shown of the last layer's outputs, by their names.
_SHOWN = {
    "attention_scores": "attention",
    "queries": "query_relation",
    "keys": "key_relation",
    "values": "value_relation",
}


def _last_layer(output, teacher_layer, error, weight):
    """A term of the student's last layer and one of the teacher's."""
    return Term((output, teacher_layer), (output, -1), error, weight, name=_SHOWN[output])


def _is_causal(teacher, student):
    """Whether tokens see the earlier ones alone, in both models or in neither.

    Raises:
        InputError: where they do in one of them.
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
    """The layers of each model, from its config or else its outputs."""
    counts = []
    for model, side in zip(models, ("teacher", "student"), strict=True):
        config = getattr(model, "text_config", None)
        if config is None:
            read_tensor(model, ("attention_scores", 0), side)
        counts.append(config.num_layers if config else len(model.output["attention_scores"]))
    return counts
