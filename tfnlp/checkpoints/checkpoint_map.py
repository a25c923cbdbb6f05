"""Map of a model family to its checkpoints, and helpers for it."""

import collections.abc
import dataclasses
import re

from tfnlp import models
from tfnlp.families import MODEL_TYPES
from tfnlp.utils.errors import InputError, unknown_name
from tfnlp.utils.lazy_dictionary import LazyDictionary

# By the names in config.json.
MAPS = LazyDictionary(
    {model_type: family.maps[model_type] for model_type, family in MODEL_TYPES.items()}
)
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
# Our activation: the name of it that is written, the first.
ACTIVATION_NAMES = {ours: theirs for theirs, ours in reversed(ACTIVATIONS.items())}
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
# Fields of any family without effect.
COMMON_HARMLESS = {
    # They describe the file and its origin.
    *("_name_or_path", "model_type", "transformers_version", "finetuning_task", "language"),
    # `read_head`, `read_labels`, `read_task_settings` and `load_model` read them.
    *("architectures", "id2label", "label2id", "task_specific_params", "activation_ranges"),
    "problem_type",
    "num_labels",  # the stored head has as many
    # They are arguments here: the type and the outputs.
    *("dtype", "torch_dtype", "use_bfloat16", "output_attentions", "output_hidden_states"),
    *("return_dict", "use_return_dict", "use_cache", "output_past", "return_dict_in_generate"),
    "output_scores",
    # The result is the same, computed otherwise.
    *("chunk_size_feed_forward", "gradient_checkpointing", "attn_implementation"),
    *("_attn_implementation", "_attn_implementation_autoset", "torchscript", "xla_device"),
    "tf_legacy_loss",
    # They are of the tokenizer.
    *("bos_token_id", "eos_token_id", "sep_token_id", "cls_token_id", "mask_token_id"),
    *("unk_token_id", "tokenizer_class", "prefix"),
    # They say how text is generated from the logits.
    *("decoder_start_token_id", "forced_bos_token_id", "forced_eos_token_id", "max_length"),
    *("min_length", "do_sample", "early_stopping", "num_beams", "num_beam_groups", "top_k"),
    *("top_p", "typical_p", "temperature", "repetition_penalty", "length_penalty"),
    *("diversity_penalty", "exponential_decay_length_penalty", "no_repeat_ngram_size"),
    *("encoder_no_repeat_ngram_size", "num_return_sequences", "bad_words_ids"),
    *("begin_suppress_tokens", "suppress_tokens", "remove_invalid_values"),
}
# The `problem_type` of a classifier of several labels a text.
MULTI_LABEL = "multi_label_classification"
# A number in the path of a variable, such as that of a block.
NUMBER = re.compile(r"_(\d+)")


@dataclasses.dataclass(frozen=True)
class Weight:
    """One of our variables, and its tensor in a checkpoint.

    Args:
        path: of our variable, with "{}" for a number.
        name: theirs, without the prefix of the encoder, with "{}" for the same number.
        transpose: whether theirs is (out, in), where a Keras kernel is (in, out).
        axes: theirs, where they are more than ours: D the width, N heads of size H, V entries, 1.
        part: (i, n) where ours is the i-th of n equal parts of theirs, along the axis of
            outputs: the first with `transpose`, else the last.
        head: whether it belongs to a head, whose names have no prefix.
        of_any_head: whether all heads have it, so that one starts from another's.
        other_names: alternative names, which are looked up first.
        untied_name: likewise; it is written too where the output is not tied.
    """

    path: str
    name: str
    transpose: bool = False
    axes: str = ""
    part: tuple | None = None
    head: bool = False
    of_any_head: bool = False
    other_names: tuple = ()
    untied_name: str | None = None

    @property
    def names(self):
        """All names that the tensor can have, in the order in which they are looked up."""
        return (*self.other_names, *filter(None, [self.untied_name]), self.name)

    @property
    def layer(self):
        """Name of our layer."""
        return self.path.partition("/")[0]

    def find(self, stored):
        """Return the first of `names` in a dict of a checkpoint's names; None without one."""
        return next((stored[name] for name in self.names if name in stored), None)

    @property
    def part_axis(self):
        """Axis of a stored tensor along which variables are parts."""
        return 0 if self.transpose else -1

    def stored_shape(self, shape, config):
        """Return the shape of the stored tensor of a variable with the given shape."""
        if self.axes:
            width, heads = config.hidden_dim, getattr(config, "num_heads", 1)
            sizes = {"D": width, "N": heads, "H": width // heads, "V": shape[0], "1": 1}
            return tuple(sizes[axis] for axis in self.axes)
        shape = list(shape)[:: -1 if self.transpose else 1]
        if self.part:
            shape[self.part_axis] *= self.part[1]
        return tuple(shape)


def _unchanged(fields, _):
    return fields


def _nothing(*_):
    return {}


@dataclasses.dataclass(frozen=True)
class CheckpointMap:
    """Checkpoints of a model family: their fields, weights and classes by ours.

    Args:
        model_type: its name in config.json.
        config: our config class.
        prefix: of the encoder's names in models with a head.
        fields: {their config field: ours}.
        encoder: `Weight`s with that prefix; a model has those of its variables.
        heads: {our head: its `Weight`s}, without that prefix.
        architectures: {our head: class of `transformers` in config.json}.
        fixed: {their field that would change the model: the only supported value}.
        harmless: their fields without effect in tfnlp.
        aliases: {other name of a field of theirs: the field}.
        defaults: {their field: value if config.json lacks it}, where it differs from our config's
            default, and for fields that `decode` reads.
        decode: function from our fields and theirs to our fields, for conversions beyond names.
        encode: function from their fields and our config to their fields, for the other direction.
        adapt: function from our config and the names of a checkpoint's tensors to the config with
            facts that config.json lacks.
        variant: function from our config to the `Weight`s in place of those of the same paths.
        constants: function from our config and a head to tensors by name that their files hold but
            that are computed here.
        computed: function from our config and a function that reads a tensor to tensors by name
            that their files lack.
        unread: beginnings of the names of tensors that no model here reads.
        generation: function from our config to the fields of a generation_config.json, for a head
            that generates text; None without one.
    """

    model_type: str
    config: type
    prefix: str
    fields: dict
    encoder: tuple
    heads: dict
    architectures: dict
    fixed: dict = dataclasses.field(default_factory=lambda: COMMON_FIXED)
    harmless: set = dataclasses.field(default_factory=lambda: COMMON_HARMLESS)
    aliases: dict = dataclasses.field(default_factory=dict)
    defaults: dict = dataclasses.field(default_factory=dict)
    decode: collections.abc.Callable = _unchanged
    encode: collections.abc.Callable = _unchanged
    adapt: collections.abc.Callable = _unchanged
    variant: collections.abc.Callable = _nothing
    constants: collections.abc.Callable = _nothing
    computed: collections.abc.Callable = _nothing
    unread: tuple = ()
    generation: collections.abc.Callable | None = None

    def rows(self, config, head):
        """Return {path: `Weight`} of all models of a config with a head."""
        rows = (*self.encoder, *self.heads.get(stored_head(head), ()), *self.variant(config))
        return {row.path: row for row in rows}

    def prefix_of(self, weight, head):
        """Return what precedes the name of a `Weight` in the folder of a model with a head."""
        return self.prefix if stored_head(head) and not weight.head else ""

    def architecture(self, head):
        """Return the class of `transformers` with a head; None where it has none."""
        return self.architectures.get(stored_head(head))

    def weights(self, model):
        """Return {path: `Weight`} of a model's variables, without those that files lack."""
        rows, weights = self.rows(model.text_config, encoder_head(model)), {}
        for variable in model.weights:
            if row := rows.get(NUMBER.sub("_{}", variable.path)):
                name = row.name.format(*NUMBER.findall(variable.path))
                weights[variable.path] = dataclasses.replace(row, path=variable.path, name=name)
        return weights


def stored_head(head):
    """Return the head whose class and tensors a folder has for a head.

    `transformers` tells a classifier of several labels by the `problem_type` alone, and has an
    embedder's encoder.
    """
    return {"multi_label_classifier": "classifier", "embedder": None}.get(head, head)


def encoder_head(model):
    """Return the head whose class and tensors stand beside the encoder's in a model's folder.

    Modules have those of a head that reads the vector of a text.
    """
    return None if models.vector_head(model) else model.head


def map_of(config):
    """Return the `CheckpointMap` of a config."""
    return MAPS[config.model_type]


def read_fields(family, fields, path):
    """Return our config from the fields of a config.json.

    Returns:
        The config, and the names of unknown fields.

    Raises:
        InputError: if an activation is unknown, or fields describe an unsupported model.
    """
    others = {family.aliases[name]: fields[name] for name in family.aliases if name in fields}
    fields = family.defaults | fields | others
    groups = (family.fields, family.fixed, family.harmless, family.defaults, family.aliases)
    unknown = sorted(fields.keys() - set().union(*groups))
    ours = {}
    for theirs, name in family.fields.items():
        value = fields.get(theirs)
        if value is not None or (theirs in fields and name == "classifier_dropout"):
            ours[name] = value
    try:
        for name, value in family.fixed.items():
            check_only(fields, name, value)
        ours = family.decode(ours, fields)
        for name in {"activation", "convolution_activation"} & ours.keys():
            if ours[name] not in ACTIVATIONS:
                theirs = next(t for t, o in family.fields.items() if o == name)
                raise unknown_name(theirs, ours[name], ACTIVATIONS)
            ours[name] = ACTIVATIONS[ours[name]]
        return family.config(**ours), unknown
    except (TypeError, ValueError) as e:
        raise InputError(f"{path}: {e}") from None


def write_fields(family, config):
    """Return the fields of a config.json from our config."""
    theirs = {name: getattr(config, ours) for name, ours in family.fields.items()}
    for name, ours in family.fields.items():
        if ours in ("activation", "convolution_activation"):
            theirs[name] = ACTIVATION_NAMES[theirs[name]]
        elif ours == "classifier_dropout" and theirs[name] is None:
            # `transformers` takes a number alone where its own default is one.
            usual = family.defaults.get(name, family.config.classifier_dropout)
            theirs[name] = None if usual is None else config.head_dropout
    if theirs.get("head_dim", 0) is None:
        del theirs["head_dim"]
    return {"model_type": family.model_type} | family.encode(theirs, config)


def check_only(fields, name, value):
    """Raise an InputError if a field has a value other than the given one."""
    if fields.get(name) not in (value, None):
        raise InputError(f"{name}={fields[name]!r} is not supported; only {value!r} is.")


def dense(path, name):
    """Return the kernel and the bias of a torch Linear."""
    return kernel(path, name), Weight(f"{path}/bias", f"{name}.bias")


def kernel(path, name):
    """Return the kernel of a torch Linear."""
    return Weight(f"{path}/kernel", f"{name}.weight", transpose=True)


def joint_kernels(path, name):
    """Return the kernels of query, key and value, which are parts of that of one torch Linear."""
    return tuple(
        dataclasses.replace(kernel(f"{path}/{part}", name), part=(i, 3))
        for i, part in enumerate(("query", "key", "value"))
    )


def norm(path, name):
    """Return the scale and the shift of a torch LayerNorm."""
    return Weight(f"{path}/gamma", f"{name}.weight"), Weight(f"{path}/beta", f"{name}.bias")


def heads(**weights):
    """Return the `heads` of a map; a tagger and an answerer have the same names in all."""
    alike = {"tagger": dense("classifier", "classifier"), "answerer": dense("span", "qa_outputs")}
    return {head: of_head(rows) for head, rows in (alike | weights).items()}


def of_head(weights):
    """Return `Weight`s without the encoder's prefix."""
    return tuple(dataclasses.replace(weight, head=True) for weight in weights)


def masked_lm(transform, layer_norm, output, bias=None):
    """Return a masked LM head: a Linear, a LayerNorm, and a Linear over the vocabulary.

    `bias` is the name of the output's bias where it is not only that Linear's. `transformers`
    reads the Linear's, and needs both where the output is not tied.
    """
    names = {"name": bias, "untied_name": f"{output}.bias"} if bias else {"name": f"{output}.bias"}
    return (
        *dense("lm_transform", transform),
        *norm("lm_norm", layer_norm),
        kernel("lm_output", output),
        Weight("lm_bias/bias", **names),
    )


def architectures(stem, *heads, **names):
    """Return the classes of `transformers` for some heads, by default those of most families.

    `names` has classes with other names, by head.
    """
    endings = {
        "classifier": "ForSequenceClassification",
        "tagger": "ForTokenClassification",
        "answerer": "ForQuestionAnswering",
        "chooser": "ForMultipleChoice",
        "masked_lm": "ForMaskedLM",
    }
    classes = {head: f"{stem}{endings[head]}" for head in heads or endings}
    return {None: f"{stem}Model"} | classes | names
