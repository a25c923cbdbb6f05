"""What a family's map says of its Hugging Face checkpoints, and helpers to write one."""

import collections.abc
import dataclasses

from tfnlp.errors import InputError

# Their activation: ours.
ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_python": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "relu": "relu",
    "silu": "silu",
    "swish": "silu",
    "tanh": "tanh",
}
# Our activation: the name of it that is written.
ACTIVATION_NAMES = {
    "gelu": "gelu",
    "gelu_tanh": "gelu_new",
    "relu": "relu",
    "silu": "silu",
    "tanh": "tanh",
}
# Their config fields that most families share: ours.
COMMON_FIELDS = {
    "vocab_size": "vocabulary_size",
    "num_hidden_layers": "num_layers",
    "num_attention_heads": "num_heads",
    "hidden_size": "hidden_dim",
    "intermediate_size": "intermediate_dim",
    "hidden_act": "activation",
    "hidden_dropout_prob": "dropout",
    "attention_probs_dropout_prob": "attention_dropout",
    "max_position_embeddings": "max_length",
    "type_vocab_size": "num_segments",
    "layer_norm_eps": "layer_norm_epsilon",
    "initializer_range": "initializer_range",
    "pad_token_id": "pad_token_id",
}
# Fields of any family that change nothing in what a model computes from its inputs.
HARMLESS_FIELDS = {
    *("_name_or_path", "architectures", "model_type", "transformers_version", "torch_dtype"),
    *("dtype", "id2label", "label2id", "finetuning_task", "problem_type", "use_cache"),
    *("bos_token_id", "eos_token_id", "sep_token_id", "cls_token_id", "mask_token_id"),
    *("unk_token_id", "decoder_start_token_id", "output_attentions", "output_hidden_states"),
    *("return_dict", "gradient_checkpointing", "tokenizer_class", "chunk_size_feed_forward"),
    *("is_encoder_decoder", "task_specific_params", "num_labels", "language", "directionality"),
    *("pooler_fc_size", "pooler_num_attention_heads", "pooler_num_fc_layers", "pooler_type"),
    *("pooler_size_per_head", "attn_implementation", "_attn_implementation", "tie_weights_"),
    *("n_ctx", "n_special", "predict_special_tokens", "untie_r", "down_scale_factor"),
    *("net_structure_type", "gap_size", "num_memory_blocks", "pruned_heads", "torchscript"),
    *("classifier_dropout", "legacy", "pooler_hidden_size", "summary_use_proj"),
    *("summary_type", "summary_activation", "summary_proj_to_labels", "summary_first_dropout"),
    *("summary_last_dropout", "start_n_top", "end_n_top", "mem_len", "reuse_len"),
    *("use_mems_eval", "use_mems_train", "same_length", "tie_word_embeddings"),
    *("use_mems", "use_bfloat16", "init", "init_range", "init_std", "dropatt", "adaptive"),
    *("proj_init_std", "sample_softmax", "trainer_compatible"),
}


@dataclasses.dataclass(frozen=True)
class Weight:
    """Where one of our variables stands in a checkpoint.

    Args:
        path: of our variable.
        name: theirs, less the prefix of the encoder.
        transpose: whether theirs is (out, in), where a Keras kernel is (in, out).
        shape: theirs before `transpose` and `part`, where it has more axes than ours.
        part: (i, n) where ours is the i-th of n equal parts of theirs, along the axis of
            outputs: the first with `transpose`, else the last.
        head: whether the name stands without the encoder's prefix.
        other_name: a name that it has in the checkpoints of another library.
    """

    path: str
    name: str
    transpose: bool = False
    shape: tuple | None = None
    part: tuple | None = None
    head: bool = False
    other_name: str | None = None


def _identity(fields, _):
    return fields


@dataclasses.dataclass(frozen=True)
class Family:
    """A family's checkpoints.

    Args:
        model_type: what config.json calls it.
        config: our config class.
        prefix: of the encoder's names where there is a head.
        fields: their config field: ours.
        weights: of a config and a head, yields the `Weight`s.
        architectures: our head: the class of `transformers` that config.json names.
        fixed: their fields that would change the model: the one value that is supported.
        defaults: their fields: what a config.json means that lacks them, where it is not
            what our config's default says.
        decode: of our fields and theirs, gives our fields with what takes more than a name.
        encode: of their fields and our config, likewise the other way.
        adapt: of our config and the names of the tensors in a checkpoint, gives the config
            with what config.json does not tell.
    """

    model_type: str
    config: type
    prefix: str
    fields: dict
    weights: collections.abc.Callable
    architectures: dict
    fixed: dict = dataclasses.field(default_factory=dict)
    defaults: dict = dataclasses.field(default_factory=dict)
    decode: collections.abc.Callable = _identity
    encode: collections.abc.Callable = _identity
    adapt: collections.abc.Callable = _identity


def read_fields(family, fields, path):
    """Our config from the fields of a config.json.

    Returns:
        The config, and the names of fields that are not known and have no effect.

    Raises:
        InputError: for an unknown activation and for fields that ask for another model.
    """
    fields = family.defaults | fields
    for name, value in family.fixed.items():
        if fields.get(name, value) not in (value, None):
            raise InputError(
                f"{path}: {name}={fields[name]!r} is not supported; only {value!r} is."
            )
    known = HARMLESS_FIELDS.union(family.fields, family.fixed, family.defaults)
    unknown = sorted(fields.keys() - known)
    ours = {family.fields[name]: value for name, value in fields.items() if name in family.fields}
    ours = {
        name: value
        for name, value in ours.items()
        if value is not None or name in ("classifier_dropout",)
    }
    ours = family.decode(ours, fields)
    for name in ("activation", "convolution_activation"):
        if name in ours:
            if ours[name] not in ACTIVATIONS:
                theirs = next(t for t, o in family.fields.items() if o == name)
                raise InputError(
                    f"{path}: {theirs}={ours[name]!r} is not one of {sorted(ACTIVATIONS)}."
                )
            ours[name] = ACTIVATIONS[ours[name]]
    try:
        return family.config(**ours), unknown
    except (TypeError, ValueError) as e:
        raise InputError(f"{path}: {e}") from None


def write_fields(family, config):
    """The fields of a config.json from our config."""
    theirs = {name: getattr(config, ours) for name, ours in family.fields.items()}
    for name, ours in family.fields.items():
        if ours in ("activation", "convolution_activation"):
            theirs[name] = ACTIVATION_NAMES[theirs[name]]
    return {"model_type": family.model_type} | family.fixed | family.encode(theirs, config)


def dense(path, name, **kwargs):
    """The kernel and the bias of a torch Linear."""
    yield Weight(f"{path}/kernel", f"{name}.weight", transpose=True, **kwargs)
    yield Weight(f"{path}/bias", f"{name}.bias", **kwargs)


def norm(path, name, **kwargs):
    """The scale and the shift of a torch LayerNorm."""
    yield Weight(f"{path}/gamma", f"{name}.weight", **kwargs)
    yield Weight(f"{path}/beta", f"{name}.bias", **kwargs)


def token_heads(head):
    """The weights of a tagger and an answerer, which all families call the same."""
    if head == "tagger":
        yield from dense("classifier", "classifier", head=True)
    elif head == "answerer":
        yield from dense("span", "qa_outputs", head=True)


def architectures(stem, **names):
    """The classes of `transformers` for the heads that most families have."""
    return {
        None: f"{stem}Model",
        "classifier": f"{stem}ForSequenceClassification",
        "tagger": f"{stem}ForTokenClassification",
        "answerer": f"{stem}ForQuestionAnswering",
        "chooser": f"{stem}ForMultipleChoice",
        "masked_lm": f"{stem}ForMaskedLM",
    } | names
