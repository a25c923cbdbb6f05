"""Description of a model family's Hugging Face checkpoints, and helpers for it."""

import collections.abc
import dataclasses

from tfnlp.utils.errors import InputError

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
    "tie_word_embeddings": "tie_embeddings",
}

# Of families whose heads can be pruned; `transformers` has no such field there, and derives it.
HEAD_FIELDS = {"head_dim": "head_dim"}


def because(reason, *names):
    """Return {name: reason}, for config fields that change nothing that tfnlp computes."""
    return dict.fromkeys(names, reason)


# Fields of any family that ask for another model: the one value that is supported.
COMMON_FIXED = {
    "is_decoder": False,
    "is_encoder_decoder": False,
    "add_cross_attention": False,
    "cross_attention_hidden_size": None,
    "tie_encoder_decoder": False,
    "pruned_heads": {},
    "quantization_config": None,
}
# Fields of any family without effect, and why.
COMMON_HARMLESS = (
    because(
        "describes the file and its origin",
        *("_name_or_path", "model_type", "transformers_version", "finetuning_task", "language"),
    )
    | because("read by `read_head` and `read_labels`", "architectures", "id2label", "label2id")
    | because("read by `read_task_settings`", "task_specific_params")
    | because("read by `load_model`", "activation_ranges")
    | because("the stored head has as many classes", "num_labels")
    | because("which loss to train with; tasks have their own", "problem_type")
    | because("the type is an argument here", "dtype", "torch_dtype", "use_bfloat16")
    | because(
        "outputs; they are arguments here",
        *("output_attentions", "output_hidden_states", "return_dict", "use_return_dict"),
        *("use_cache", "output_past", "return_dict_in_generate", "output_scores"),
    )
    | because(
        "the same result, computed otherwise",
        *("chunk_size_feed_forward", "gradient_checkpointing", "attn_implementation"),
        *("_attn_implementation", "_attn_implementation_autoset", "torchscript", "xla_device"),
        "tf_legacy_loss",
    )
    | because(
        "of the tokenizer",
        *("bos_token_id", "eos_token_id", "sep_token_id", "cls_token_id", "mask_token_id"),
        *("unk_token_id", "tokenizer_class", "prefix"),
    )
    | because(
        "how text is generated from the logits",
        *("decoder_start_token_id", "forced_bos_token_id", "forced_eos_token_id", "max_length"),
        *("min_length", "do_sample", "early_stopping", "num_beams", "num_beam_groups", "top_k"),
        *("top_p", "typical_p", "temperature", "repetition_penalty", "length_penalty"),
        *("diversity_penalty", "exponential_decay_length_penalty", "no_repeat_ngram_size"),
        *("encoder_no_repeat_ngram_size", "num_return_sequences", "bad_words_ids"),
        *("begin_suppress_tokens", "suppress_tokens", "remove_invalid_values"),
    )
)


@dataclasses.dataclass(frozen=True)
class Weight:
    """Location of one of our variables in a checkpoint.

    Args:
        path: of our variable.
        name: theirs, without the prefix of the encoder.
        transpose: whether theirs is (out, in), where a Keras kernel is (in, out).
        shape: theirs before `transpose` and `part`, where it has more axes than ours.
        part: (i, n) where ours is the i-th of n equal parts of theirs, along the axis of
            outputs: the first with `transpose`, else the last.
        head: whether the name has no encoder prefix.
        other_names: alternative names, which are looked up first.
        all_names: whether it is written under all of its names.
    """

    path: str
    name: str
    transpose: bool = False
    shape: tuple | None = None
    part: tuple | None = None
    head: bool = False
    other_names: tuple = ()
    all_names: bool = False


def _identity(fields, _):
    return fields


def _nothing(*_):
    return {}


@dataclasses.dataclass(frozen=True)
class Family:
    """Checkpoint format of a model family.

    Args:
        model_type: its name in config.json.
        config: our config class.
        prefix: of the encoder's names in models with a head.
        fields: {their config field: ours}.
        weights: function from a config and a head to the `Weight`s, an iterator.
        architectures: {our head: class of `transformers` in config.json}.
        fixed: {their field that would change the model: the only supported value}.
        harmless: {their field without effect in tfnlp: the reason}.
        aliases: {other name of a field of theirs: the field}.
        defaults: {their field: value if config.json lacks it}, where it differs from our config's
            default, and for fields that `decode` reads.
        decode: function from our fields and theirs to our fields, for conversions beyond names.
        encode: function from their fields and our config to their fields, for the other direction.
        constants: function from our config and a head to tensors by name that their files hold but
            that are computed here.
        unread: function from our config to the names of tensors that their files may hold but that
            no part of such a model reads.
        generation: function from our config to the fields of a generation_config.json, for a head
            that generates text; None without one.
        only: values of our fields that distinguish two families with one config class.
        adapt: function from our config and the names of a checkpoint's tensors to the config with
            facts that config.json lacks.
    """

    model_type: str
    config: type
    prefix: str
    fields: dict
    weights: collections.abc.Callable
    architectures: dict
    fixed: dict = dataclasses.field(default_factory=lambda: COMMON_FIXED)
    harmless: dict = dataclasses.field(default_factory=lambda: COMMON_HARMLESS)
    aliases: dict = dataclasses.field(default_factory=dict)
    defaults: dict = dataclasses.field(default_factory=dict)
    decode: collections.abc.Callable = _identity
    encode: collections.abc.Callable = _identity
    adapt: collections.abc.Callable = _identity
    constants: collections.abc.Callable = _nothing
    unread: collections.abc.Callable = _nothing
    generation: collections.abc.Callable | None = None
    only: dict = dataclasses.field(default_factory=dict)


def read_fields(family, fields, path):
    """Return our config from the fields of a config.json.

    Returns:
        The config, and the names of unknown fields.

    Raises:
        InputError: if an activation is unknown, or fields describe an unsupported model.
    """
    others = {family.aliases[name]: fields[name] for name in family.aliases if name in fields}
    fields = family.defaults | fields | others
    for name, value in family.fixed.items():
        if fields.get(name, value) not in (value, None):
            raise InputError(
                f"{path}: {name}={fields[name]!r} is not supported; only {value!r} is."
            )
    groups = (family.fields, family.fixed, family.harmless, family.defaults, family.aliases)
    unknown = sorted(fields.keys() - set().union(*groups))
    ours = {family.fields[name]: value for name, value in fields.items() if name in family.fields}
    ours = {
        name: value
        for name, value in ours.items()
        if value is not None or name in ("classifier_dropout",)
    }
    try:
        ours = family.decode(ours, fields)
    except InputError as e:
        raise InputError(f"{path}: {e}") from None
    for name in ("activation", "convolution_activation"):
        if name in ours:
            if ours[name] not in ACTIVATIONS:
                theirs = next(t for t, o in family.fields.items() if o == name)
                raise InputError(
                    f"{path}: {theirs}={ours[name]!r} is not one of {sorted(ACTIVATIONS)}."
                )
            ours[name] = ACTIVATIONS[ours[name]]
    try:
        return family.config(**ours | family.only), unknown
    except (TypeError, ValueError) as e:
        raise InputError(f"{path}: {e}") from None


def write_fields(family, config):
    """Return the fields of a config.json from our config."""
    theirs = {name: getattr(config, ours) for name, ours in family.fields.items()}
    for name, ours in family.fields.items():
        if ours in ("activation", "convolution_activation"):
            theirs[name] = ACTIVATION_NAMES[theirs[name]]
    if theirs.get("head_dim", 0) is None:
        del theirs["head_dim"]
    return {"model_type": family.model_type} | family.encode(theirs, config)


def check_only(fields, name, value):
    """Check that a field is absent or has the given value.

    Raises:
        InputError: if it has another value.
    """
    if fields.get(name) not in (value, None):
        raise InputError(f"{name}={fields[name]!r} is not supported; only {value!r} is.")


def dense(path, name, **kwargs):
    """Yield the kernel and the bias of a torch Linear."""
    yield Weight(f"{path}/kernel", f"{name}.weight", transpose=True, **kwargs)
    yield Weight(f"{path}/bias", f"{name}.bias", **kwargs)


def norm(path, name, **kwargs):
    """Yield the scale and the shift of a torch LayerNorm."""
    yield Weight(f"{path}/gamma", f"{name}.weight", **kwargs)
    yield Weight(f"{path}/beta", f"{name}.bias", **kwargs)


def token_heads(head):
    """Yield the weights of a tagger or an answerer, named alike in all families."""
    if head == "tagger":
        yield from dense("classifier", "classifier", head=True)
    elif head == "answerer":
        yield from dense("span", "qa_outputs", head=True)


def output_bias(config, bias, decoder):
    """Yield the bias of an output over the vocabulary, stored also under the decoder's name.

    `transformers` reads the decoder's, and needs both where the output is not tied.
    """
    yield Weight(
        "lm_bias/bias",
        bias,
        head=True,
        other_names=(decoder,),
        all_names=not config.tie_embeddings,
    )


def output_table(config, name):
    """Yield the output over the vocabulary, if it is not tied to the token table."""
    if not config.tie_embeddings:
        yield Weight("lm_output/kernel", name, transpose=True, head=True)


def architectures(stem, **names):
    """Return the classes of `transformers` for the heads that most families have."""
    return {
        None: f"{stem}Model",
        "classifier": f"{stem}ForSequenceClassification",
        "tagger": f"{stem}ForTokenClassification",
        "answerer": f"{stem}ForQuestionAnswering",
        "chooser": f"{stem}ForMultipleChoice",
        "masked_lm": f"{stem}ForMaskedLM",
    } | names
