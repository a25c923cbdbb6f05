"""Building a student, and initialising it from its teacher's layers.

A student of a translator trains on the teacher's translations of the training texts (Kim & Rush
2016, section 3.2), like any translator: `recipes/translate.py` writes them,
`recipes/train_translator.py` trains on them.
"""

import dataclasses
import re

import numpy as np

from distill.learning.layer_map import resolve_layer_map
from tfnlp.configs import Projection
from tfnlp.layers.core.merged_weights import merged_weights
from tfnlp.models import (
    TransformerConfig,
    build_model,
    config_by_name,
    config_of,
    num_classes,
    reads_pooled_states,
    vector_head,
)
from tfnlp.models.vector_start import TABLES
from tfnlp.utils.errors import InputError

# Axis of the vocabulary in weights that have one.
TOKEN_AXES = {
    **dict.fromkeys(TABLES, 0),
    **{"lm_output/kernel": 1, "lm_bias/bias": 0},
}
# Such weights of an adaptive softmax, which clusters tokens by frequency.
CLUSTERED = r"embeddings/table_\d+|lm_softmax/(table|bias)_\d+"


def student_config(
    teacher_config,
    num_layers=None,
    hidden_dim=None,
    num_heads=None,
    family=None,
    size=None,
    intermediate_dim=None,
    **fields,
):
    """Return the teacher's config with fewer layers, another width, or another family.

    The feed-forward width keeps its ratio to the model width. Heads keep their size if the new
    width is a multiple of it. Vocabulary, positions and padding stay the teacher's.

    Args:
        teacher_config: of the teacher.
        num_layers, hidden_dim, num_heads: the student's; where None those of the size, or the
            teacher's.
        family: one of `tfnlp.models.FAMILIES`, with the teacher's sizes; the teacher's where None.
        size: one of `tfnlp.models.SIZES`; None for none.
        intermediate_dim: the inner width of the student's feed-forward networks; where None that
            of the size, or the same multiple of its width as the teacher's.
        fields: further ones of a student's family; None for those that stay.

    Raises:
        InputError: as `config_by_name`, if sizes do not fit each other, or if a transformer has
            no size by name and a teacher of other parts.
    """
    fields = {name: value for name, value in fields.items() if value is not None}
    default = teacher_config if family is None and size is None else config_by_name(family, size)
    shared = {name: getattr(teacher_config, name) for name in ("vocabulary_size", "pad_token_id")}
    sizes = {"num_layers": num_layers, "hidden_dim": hidden_dim, "num_heads": num_heads}
    if family and not default.attends:
        fields |= sizes | shared | {"intermediate_dim": intermediate_dim}
        return config_by_name(family, **fields)
    if size is None and not teacher_config.attends:
        raise InputError(
            f"The teacher is a {teacher_config.model_type}, whose sizes a transformer cannot take "
            "over; give the student a size, or a family such as lstm, textcnn or bag."
        )
    fields |= sizes
    if size is None:
        fields |= _scaled_sizes(teacher_config, **sizes, same_family=family is None)
    if intermediate_dim is not None:
        fields["intermediate_dim"] = intermediate_dim
    if family is None and size is None:
        return dataclasses.replace(teacher_config, **fields)
    fields |= shared | ({} if size else {"activation": teacher_config.activation})
    # Some families have positions for any length, so that max_length is None.
    if None not in (default.max_length, teacher_config.max_length):
        fields["max_length"] = teacher_config.max_length
    return config_by_name(family, size, **fields)


def _scaled_sizes(teacher_config, num_layers, hidden_dim, num_heads, same_family):
    """Return the sizes of a student without a size by name, in the teacher's proportions."""
    hidden_dim = hidden_dim or teacher_config.hidden_dim
    head_dim = None
    if num_heads is None and same_family and hidden_dim == teacher_config.hidden_dim:
        # After head pruning there are fewer heads than the width has room for.
        num_heads, head_dim = teacher_config.num_heads, teacher_config.head_dim
    elif num_heads is None:
        size = teacher_config.key_dim
        num_heads = teacher_config.num_heads if hidden_dim % size else hidden_dim // size
    ratio = teacher_config.intermediate_dim / teacher_config.hidden_dim
    return {
        "num_layers": num_layers or teacher_config.num_layers,
        "hidden_dim": hidden_dim,
        "num_heads": num_heads,
        "head_dim": head_dim,
        "intermediate_dim": round(ratio * hidden_dim),
    }


def make_student(
    teacher,
    num_layers=None,
    layer_map="uniform",
    initialize=True,
    tokenizer=None,
    teacher_tokenizer=None,
    **sizes,
):
    """Build a smaller model with its teacher's head and outputs, initialised from its weights.

    A DistilBERT of half the layers is `make_student(teacher, 6, family="distilbert")`.

    Args:
        teacher: from `tfnlp.models` or `load_teacher`.
        num_layers: the student's encoder blocks; the teacher's where None.
        layer_map: for each student layer the teacher's to start from, both counted from 0; or the
            name of a map, such as "uniform", "last" or "first".
        initialize: whether to copy the teacher's weights where names and shapes agree.
        tokenizer: the student's, if it is not the teacher's: its embeddings start from those of
            the teacher's tokens with the same spelling. None for the teacher's.
        teacher_tokenizer: the teacher's; needed if the student has another.
        sizes: `hidden_dim`, `num_heads`, `intermediate_dim`, `family` and `size` of the student,
            as `student_config` takes them.

    Returns:
        A `TextModel`.

    Raises:
        InputError: if sizes or the layer map do not fit, and as `with_vocabulary`.
    """
    teacher_config = config_of(teacher)
    config = student_config(teacher_config, num_layers, **sizes)
    if tokenizer is not None:
        config = with_vocabulary(config, tokenizer)
    layers = []
    if config.attends:
        layers = resolve_layer_map(layer_map, teacher_config.num_layers, config.num_layers)
    student = build_like(teacher, config)
    if initialize:
        initialize_student(student, teacher, layers, same_tokens=tokenizer is None)
        if tokenizer is not None:
            initialize_tokens(student, teacher, tokenizer, teacher_tokenizer)
    return student


def build_like(model, config, **options):
    """Build a model of another config, with the head, classes and outputs of `model`.

    Args:
        model: from `build_model`.
        config: of the new model.
        options: as in `build_model`.
    """
    attends = config.attends
    return build_model(
        config,
        model.head,
        num_classes(model),
        vectors=_vectors_of_width(model, config),
        hidden_states="hidden_states" in model.output,
        attention_scores=attends and "attention_scores" in model.output,
        attention_projections=attends and "queries" in model.output,
        **options,
    )


def _vectors_of_width(model, config):
    """Return the `VectorHead` of a model's vectors, with a projection to their width if needed."""
    head = vector_head(model)
    if model.head != "embedder" or head.projections:
        return head
    if config.hidden_dim == config_of(model).hidden_dim:
        return head
    width = model.output["embedding"].shape[-1]
    return dataclasses.replace(head, projections=(Projection(width, "linear", use_bias=False),))


def make_translator_student(
    teacher, num_layers=None, num_decoder_layers=None, layer_map="uniform", dropout=None
):
    """Build a Transformer of fewer layers, with weights of layers of its teacher.

    Args:
        teacher: a Transformer or Marian, with the head "sequence_to_sequence".
        num_layers: the student's encoder blocks; as many as the teacher's where None.
        num_decoder_layers: its decoder blocks; as many as the teacher's where None.
        layer_map: the choice of the teacher's blocks, for both encoder and decoder: "uniform",
            "last", "first" or "alternate" (`distill.learning.layer_map`).
        dropout: the student's; the teacher's where None.

    Returns:
        A `TextModel`.

    Raises:
        InputError: if the teacher is of another family, or has fewer layers than asked for.
    """
    config = config_of(teacher)
    if not isinstance(config, TransformerConfig):
        raise InputError(
            f"The teacher is a {teacher.name}, but this student has the layers of a Transformer; "
            "give a Transformer or a Marian."
        )
    sizes = config.num_layers, config.decoder.num_layers
    layers = num_layers or sizes[0], num_decoder_layers or sizes[1]
    maps = [resolve_layer_map(layer_map, *counts) for counts in zip(sizes, layers, strict=True)]
    fields = {"num_layers": layers[0], "num_decoder_layers": layers[1]}
    if dropout is not None:
        fields["dropout"] = dropout
    student = build_model(dataclasses.replace(config, **fields), teacher.head)
    sources = merged_weights(teacher)
    for weight in student.weights:
        weight.assign(sources[_teacher_path(weight.path, config, student.text_config, *maps)])
    return student


def with_vocabulary(config, tokenizer):
    """Return a config for the vocabulary of another tokenizer.

    Raises:
        InputError: if the tokenizer's ids have gaps, and so exceed the table.
    """
    vocabulary_size = len(tokenizer.tokens_by_id())
    fields = {"vocabulary_size": vocabulary_size, "pad_token_id": tokenizer.pad_token_id}
    if config.adaptive_softmax:
        # Drop cutoffs beyond the new vocabulary.
        fields["cutoffs"] = tuple(cutoff for cutoff in config.cutoffs if cutoff < vocabulary_size)
    return dataclasses.replace(config, **fields)


def initialize_tokens(student, teacher, tokenizer, teacher_tokenizer):
    """Copy the per-token weights of the tokens that both vocabularies spell the same.

    These are the embeddings and, for a masked LM, the weights of the logits that are not shared.
    Weights of another width are left as they are.
    """
    teacher_ids = [teacher_tokenizer.token_id(token) for token in tokenizer.tokens_by_id()]
    pairs = [(i, j) for i, j in enumerate(teacher_ids) if j is not None]
    ids, teacher_ids = np.array(pairs, "int64").reshape(-1, 2).T
    sources = merged_weights(teacher)
    for weight in student.weights:
        axis, source = TOKEN_AXES.get(weight.path), sources.get(weight.path)
        if axis is None or source is None:
            continue
        rows, teacher_rows = (np.moveaxis(np.array(w), axis, 0) for w in (weight, source))
        if rows.shape[1:] == teacher_rows.shape[1:]:
            rows[ids] = teacher_rows[teacher_ids]
            weight.assign(np.moveaxis(rows, 0, axis))


def initialize_student(student, teacher, layer_map, same_tokens=True):
    """Copy the teacher's embeddings, chosen layers and head to the student.

    Sanh et al. 2019, 'DistilBERT', section 3. Weights of another name or shape are left as they
    are, and so is the head on whole texts of a family with another pooling. If the student has no
    segments, its positions start as the teacher's plus its first segment.

    Args:
        student, teacher: from `tfnlp.models`.
        layer_map: for each student layer the teacher's, both counted from 0. Layers that share
            their weights (ALBERT) take those of the first of them.
        same_tokens: whether ids mean the same token in both; else per-token weights are left as
            they are, see `initialize_tokens`.

    Returns:
        The copied weights by path.
    """
    teacher_config, config = config_of(teacher), config_of(student)
    sources = merged_weights(teacher)
    copied = {}
    for weight in student.weights:
        of_pooling = reads_pooled_states(weight.path, student.head)
        if of_pooling and config.pooling != teacher_config.pooling:
            continue
        per_token = weight.path in TOKEN_AXES or re.fullmatch(CLUSTERED, weight.path)
        if per_token and not same_tokens:
            continue
        source = sources.get(_teacher_path(weight.path, teacher_config, config, layer_map))
        if source is not None and source.shape == weight.shape:
            weight.assign(source)
            copied[weight.path] = weight
    positions, segments = (f"embeddings/{name}_table" for name in ("position", "segment"))
    if positions in copied and segments in sources and not config.num_segments:
        copied[positions].assign_add(sources[segments][:1])
    return copied


def _teacher_path(path, teacher_config, config, layer_map, decoder_map=()):
    """Return the path of the teacher's weight that a student's weight starts from."""
    if match := re.fullmatch(r"(encoder|decoder)_(\d+)/(.*)", path):
        part, number, rest = match[1], int(match[2]), match[3]
    elif match := re.fullmatch(r"(encoder)/block_(\d+)/(.*)", path):  # of shared weights
        part, rest = match[1], match[3]
        number = int(match[2]) * config.num_layers // config.num_groups
    else:
        return path
    number = (decoder_map if part == "decoder" else layer_map)[number]
    groups = getattr(teacher_config, "num_groups", None)
    if groups is None:
        return f"{part}_{number}/{rest}"
    return f"encoder/block_{number * groups // teacher_config.num_layers}/{rest}"
