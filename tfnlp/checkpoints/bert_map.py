"""BERT between tfnlp and Hugging Face: config fields and weight names."""

from tfnlp.errors import InputError
from tfnlp.models.bert import BertConfig

PREFIX = "bert."

# Their config field: ours.
FIELDS = {
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
# Their activation: ours.
ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "relu": "relu",
    "silu": "silu",
    "swish": "silu",
}
# Fields that would change what the model computes, with the one value that is supported.
FIXED = {"position_embedding_type": "absolute", "is_decoder": False, "add_cross_attention": False}


def config_from_hugging_face(fields, path):
    """A `BertConfig` from the fields of a config.json.

    Raises:
        InputError: for an unknown activation and for fields that ask for another model.
    """
    for name, value in FIXED.items():
        if fields.get(name, value) not in (value, None):
            raise InputError(
                f"{path}: {name}={fields[name]!r} is not supported; only {value!r} is."
            )
    ours = {FIELDS[name]: value for name, value in fields.items() if name in FIELDS}
    ours = {name: value for name, value in ours.items() if value is not None}
    activation = ours.get("activation", "gelu")
    if activation not in ACTIVATIONS:
        raise InputError(f"{path}: hidden_act={activation!r} is not one of {sorted(ACTIVATIONS)}.")
    ours["activation"] = ACTIVATIONS[activation]
    try:
        return BertConfig(**ours)
    except (TypeError, ValueError) as e:
        raise InputError(f"{path}: {e}") from None


def config_to_hugging_face(config):
    """The fields of a config.json from a `BertConfig`."""
    theirs = {name: getattr(config, ours) for name, ours in FIELDS.items()}
    names = {ours: name for name, ours in reversed(ACTIVATIONS.items())}
    theirs["hidden_act"] = names[config.activation]
    return {"model_type": "bert", "position_embedding_type": "absolute"} | theirs


def weight_map(config, classifier):
    """Yields (path of our variable, their name less the prefix, whether to transpose).

    Their dense weights are (out, in) where a Keras kernel is (in, out).
    """
    yield "embeddings/token_table", "embeddings.word_embeddings.weight", False
    yield "embeddings/position_table", "embeddings.position_embeddings.weight", False
    if config.num_segments:
        yield "embeddings/segment_table", "embeddings.token_type_embeddings.weight", False
    yield from _norm("embeddings/norm", "embeddings.LayerNorm")
    for i in range(config.num_layers):
        ours, theirs = f"encoder_{i}", f"encoder.layer.{i}"
        for part in ("query", "key", "value"):
            yield from _dense(f"{ours}/attention/{part}", f"{theirs}.attention.self.{part}")
        yield from _dense(f"{ours}/attention/output", f"{theirs}.attention.output.dense")
        yield from _norm(f"{ours}/attention_norm", f"{theirs}.attention.output.LayerNorm")
        yield from _dense(f"{ours}/feed_forward/intermediate", f"{theirs}.intermediate.dense")
        yield from _dense(f"{ours}/feed_forward/output", f"{theirs}.output.dense")
        yield from _norm(f"{ours}/feed_forward_norm", f"{theirs}.output.LayerNorm")
    yield from _dense("pooler", "pooler.dense")
    if classifier:
        yield from _dense("classifier", "classifier")


def may_be_missing(name):
    """Weights that a checkpoint without that head lacks; they keep their fresh values."""
    return name.startswith(("pooler.", "classifier."))


def may_be_left_over(name):
    """Weights of other heads, and buffers of old versions."""
    return name.startswith(("cls.", "classifier.", "qa_outputs.")) or name.endswith(
        ".position_ids"
    )


def _dense(ours, theirs):
    yield f"{ours}/kernel", f"{theirs}.weight", True
    yield f"{ours}/bias", f"{theirs}.bias", False


def _norm(ours, theirs):
    yield f"{ours}/gamma", f"{theirs}.weight", False
    yield f"{ours}/beta", f"{theirs}.bias", False
