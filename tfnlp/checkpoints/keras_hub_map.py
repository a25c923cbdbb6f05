"""Mapping of keras-hub's presets, each read as the family of `transformers` that has the model.

A layer's variables are named 0, 1, ...; a classifier's own weights begin with `TASK`.
"""

import dataclasses

import numpy as np

from tfnlp.checkpoints.family import FAMILIES, Weight, of_head

# Prefix of the names of a task's own weights here.
TASK = "task:"
FIELDS = {
    "vocabulary_size": "vocabulary_size",
    "num_layers": "num_layers",
    "num_heads": "num_heads",
    "hidden_dim": "hidden_dim",
    "intermediate_dim": "intermediate_dim",
    "dropout": "dropout",
    "max_sequence_length": "max_length",
    "num_segments": "num_segments",
}
EMBEDDING = FIELDS | {"embedding_dim": "embedding_dim"}
# Keras writes the first three for any model; the others say how fresh weights are drawn.
HARMLESS = {"name", "trainable", "dtype", "kernel_initializer_range", "bias_initializer"}


def _table(path, layer, place=0):
    return Weight(path, f"layers/{layer}/vars/{place}")


def _dense(path, layer, prefix="", axes=("", "")):
    return tuple(
        Weight(f"{path}/{name}", f"{prefix}layers/{layer}/vars/{place}", axes=axes[place])
        for place, name in enumerate(("kernel", "bias"))
    )


def _norm(path, layer):
    return _table(f"{path}/gamma", layer), _table(f"{path}/beta", layer, 1)


def _blocks(ours, layer, underscore="", joined="NH"):
    """Return the weights of blocks, whose projections have a separate axis for the heads."""
    attention = f"{layer}/_self_attention_layer"
    split = ("DNH", "NH")
    return (
        *_dense(f"{ours}/attention/query", f"{attention}/{underscore}query_dense", axes=split),
        *_dense(f"{ours}/attention/key", f"{attention}/{underscore}key_dense", axes=split),
        *_dense(f"{ours}/attention/value", f"{attention}/{underscore}value_dense", axes=split),
        *_dense(
            f"{ours}/attention/output",
            f"{attention}/{underscore}output_dense",
            axes=(f"{joined}D", ""),
        ),
        *_norm(f"{ours}/attention_norm", f"{layer}/_self_attention_layer_norm"),
        *_dense(f"{ours}/feed_forward/intermediate", f"{layer}/_feedforward_intermediate_dense"),
        *_dense(f"{ours}/feed_forward/output", f"{layer}/_feedforward_output_dense"),
        *_norm(f"{ours}/feed_forward_norm", f"{layer}/_feedforward_layer_norm"),
    )


THREE_TABLES = (
    _table("embeddings/token_table", "reversible_embedding"),
    _table("embeddings/position_table", "position_embedding"),
    _table("embeddings/segment_table", "embedding"),
    *_norm("embeddings/norm", "layer_normalization"),
)
BLOCKS = _blocks("encoder_{}", "transformer_encoder{}")
TWO_TABLES = "token_and_position_embedding"
BERT = (*THREE_TABLES, *BLOCKS, *_dense("pooler", "dense"))
ELECTRA = (*THREE_TABLES, *_dense("embeddings/projection", "dense"), *BLOCKS)
ALBERT = (
    *THREE_TABLES,
    *_dense("embeddings/projection", "dense"),
    *_blocks("encoder/block_{}", "transformer_encoder{}"),
    *_dense("pooler", "dense_1"),
)
DISTILBERT = (
    _table("embeddings/token_table", f"{TWO_TABLES}/token_embedding"),
    _table("embeddings/position_table", f"{TWO_TABLES}/position_embedding"),
    *_norm("embeddings/norm", "layer_normalization"),
    *BLOCKS,
)
ROBERTA = (
    _table("embeddings/token_table", f"{TWO_TABLES}/token_embedding"),
    Weight("embeddings/position_table", "positions"),
    Weight("embeddings/segment_table", "segments"),
    *_norm("embeddings/norm", "layer_normalization"),
    *BLOCKS,
)
DEBERTA = (
    _table("embeddings/token_table", "reversible_embedding"),
    *_norm("embeddings/norm", "layer_normalization"),
    _table("relative_positions/table", "relative_embedding"),
    *_norm("relative_positions/norm", "relative_embedding/layer_norm"),
    # This attention joins its heads before the output.
    *_blocks("encoder_{}", "disentangled_attention_encoder{}", underscore="_", joined="D"),
)
XLNET_ATTENTION = "layers/xl_net_encoder{}/relative_attention"
XLNET = (
    _table("embeddings/token_table", "content_and_query_embedding/word_embed"),
    _table("embeddings/query_vector", "xl_net_attention_mask_layer"),
    *(
        Weight(
            f"encoder_{{}}/attention/{part}/kernel",
            f"{XLNET_ATTENTION}/{name}_dense/vars/0",
            transpose=part == "output",
            axes="DNH",
        )
        for part, name in (
            *(("query", "query"), ("key", "key"), ("value", "value")),
            *(("position", "_encoding"), ("output", "output")),
        )
    ),
    _table("encoder_{}/attention/content_bias", "xl_net_encoder{}", 0),
    _table("encoder_{}/attention/position_bias", "xl_net_encoder{}", 1),
    _table("encoder_{}/attention/segment_bias", "xl_net_encoder{}", 2),
    _table("encoder_{}/attention/segment_table", "xl_net_encoder{}", 3),
    *_norm("encoder_{}/attention_norm", "xl_net_encoder{}/layer_norm"),
    *_dense(
        "encoder_{}/feed_forward/intermediate", "xl_net_encoder{}/feedforward_intermediate_dense"
    ),
    *_dense("encoder_{}/feed_forward/output", "xl_net_encoder{}/feedforward_output_dense"),
    *_norm("encoder_{}/feed_forward_norm", "xl_net_encoder{}/layer_norm_ff"),
)
GPT2 = (
    _table("embeddings/token_table", "reversible_embedding"),
    _table("embeddings/position_table", "position_embedding"),
    *_blocks("encoder_{}", "transformer_decoder{}"),
    *_norm("final_norm", "layer_normalization"),
)


def _roberta_tables(config, read_tensor):
    """Return the tables with the rows before the first position, and a segment: zeros."""
    places = read_tensor(f"layers/{TWO_TABLES}/position_embedding/vars/0")
    before = np.zeros((config.pad_token_id + 1, config.hidden_dim), "float32")
    return {"positions": np.r_[before, places], "segments": before[:1]}


def _suffix(number):
    """Return the end of a layer's name: none for the first."""
    return "" if number == "0" else f"_{number}"


def _preset(stem, model_type, encoder, fields=FIELDS, decode=None, **options):
    """Return the `Family` of keras-hub's classes.

    Args:
        stem: prefix of their names.
        model_type: the family of `transformers`.
        encoder, fields: as in `Family`.
        decode: function from a dict of our fields to those to change.
        options: further fields of `Family`.
    """

    def decoded(ours, _):
        ours = {"attention_dropout": ours.get("dropout", 0.1)} | ours
        return ours | (decode(ours) if decode else {})

    has_pooler = any(weight.layer == "pooler" for weight in encoder)
    layers = ["classifier"] if has_pooler else ["pooler", "classifier"]
    head = [
        weight
        for i, path in enumerate(layers)
        for weight in _dense(path, f"dense{_suffix(str(i))}", TASK)
    ]
    names = {None: f"{stem}Backbone", "classifier": f"{stem}TextClassifier"}
    return dataclasses.replace(
        FAMILIES[model_type],
        prefix="",
        fields=fields,
        encoder=encoder,
        heads={"classifier": of_head(head)},  # others start from fresh weights
        architectures=names | options.pop("architectures", {}),
        fixed={"num_inner_repetitions": 1},
        harmless=HARMLESS,
        aliases={},
        defaults={},
        decode=decoded,
        adapt=lambda config, names: config,
        number=_suffix,
        **options,
    )


def _tanh_gelu(ours):
    """Return keras-hub's tanh GELU; the released models have the exact one."""
    return {"activation": "gelu_new"}


PRESETS = {
    "BertBackbone": _preset("Bert", "bert", BERT, decode=_tanh_gelu),
    "RobertaBackbone": _preset(
        *("Roberta", "roberta", ROBERTA),
        computed=_roberta_tables,
        unread=(f"layers/{TWO_TABLES}/position_embedding/",),
    ),
    "DistilBertBackbone": _preset("DistilBert", "distilbert", DISTILBERT),
    "AlbertBackbone": _preset(
        *("Albert", "albert", ALBERT), EMBEDDING | {"num_groups": "num_groups"}, decode=_tanh_gelu
    ),
    "ElectraBackbone": _preset(
        *("Electra", "electra", ELECTRA),
        EMBEDDING | {"vocab_size": "vocabulary_size"},
        decode=_tanh_gelu,
        # A pooler, which the paper's and `transformers`' models lack; it follows a projection.
        unread=("layers/dense/", "layers/dense_1/"),
    ),
    "DebertaV3Backbone": _preset(
        *("DebertaV3", "deberta-v2", DEBERTA),
        FIELDS | {"bucket_size": "num_buckets"},
        decode=lambda ours: {"max_distance": ours["max_length"]},
    ),
    "XLNetBackbone": _preset("XLNet", "xlnet", XLNET, FIELDS | {"activation": "activation"}),
    "GPT2Backbone": _preset(
        *("GPT2", "gpt2", GPT2),
        decode=lambda ours: {"embedding_dropout": ours["dropout"]},
        architectures={"causal_lm": "GPT2CausalLM"},
    ),
}
