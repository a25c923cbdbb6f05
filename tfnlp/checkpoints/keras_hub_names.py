"""Names of the weights in keras-hub presets, by family.

A layer's variables are named 0, 1, ...; a classifier's own weights begin with `TASK`.
"""

import dataclasses

import numpy as np

from tfnlp.checkpoints.family import Weight

# Prefix of the names of a task's own weights here.
TASK = "task:"


def _table(path, layer):
    yield Weight(path, f"layers/{layer}/vars/0")


def _dense(path, layer, **kwargs):
    yield Weight(f"{path}/kernel", f"layers/{layer}/vars/0", **kwargs)
    yield Weight(f"{path}/bias", f"layers/{layer}/vars/1", **kwargs)


def _norm(path, layer):
    yield Weight(f"{path}/gamma", f"layers/{layer}/vars/0")
    yield Weight(f"{path}/beta", f"layers/{layer}/vars/1")


def _numbered(layer, i):
    return f"{layer}_{i}" if i else layer


def _attention(config, path, layer, underscore=""):
    """Yield the projections of attention, which have a separate axis for the heads."""
    heads = config.num_heads, config.hidden_dim // config.num_heads
    for part in ("query", "key", "value"):
        name = f"layers/{layer}/{underscore}{part}_dense/vars"
        yield Weight(f"{path}/{part}/kernel", f"{name}/0", shape=(config.hidden_dim, *heads))
        yield Weight(f"{path}/{part}/bias", f"{name}/1", shape=heads)
    name = f"layers/{layer}/{underscore}output_dense/vars"
    # DeBERTa's attention joins its heads before.
    joined = (config.hidden_dim,) if underscore else heads
    yield Weight(f"{path}/output/kernel", f"{name}/0", shape=(*joined, config.hidden_dim))
    yield Weight(f"{path}/output/bias", f"{name}/1")


def _block(config, path, layer, underscore=""):
    yield from _attention(
        config, f"{path}/attention", f"{layer}/_self_attention_layer", underscore
    )
    yield from _norm(f"{path}/attention_norm", f"{layer}/_self_attention_layer_norm")
    for part in ("intermediate", "output"):
        yield from _dense(f"{path}/feed_forward/{part}", f"{layer}/_feedforward_{part}_dense")
    yield from _norm(f"{path}/feed_forward_norm", f"{layer}/_feedforward_layer_norm")


def _blocks(config, layer="transformer_encoder", underscore=""):
    for i in range(config.num_layers):
        yield from _block(config, f"encoder_{i}", _numbered(layer, i), underscore)


def _three_tables(config):
    """Yield the embeddings of BERT-like models."""
    yield from _table("embeddings/token_table", "reversible_embedding")
    yield from _table("embeddings/position_table", "position_embedding")
    yield from _table("embeddings/segment_table", "embedding")
    yield from _norm("embeddings/norm", "layer_normalization")


def bert(config):
    """Yield the weights of a BERT."""
    yield from _three_tables(config)
    yield from _blocks(config)
    yield from _dense("pooler", "dense")


def electra(config):
    """Yield the weights of an ELECTRA."""
    yield from _three_tables(config)
    if config.embedding_dim != config.hidden_dim:
        yield from _dense("embeddings/projection", "dense")
    yield from _blocks(config)


def electra_pooler(config):
    """Return the layer name of a pooler that the paper's and `transformers`' models lack."""
    return "dense_1" if config.embedding_dim != config.hidden_dim else "dense"


def albert(config):
    """Yield the weights of an ALBERT."""
    yield from _three_tables(config)
    yield from _dense("embeddings/projection", "dense")
    for i in range(config.num_groups):
        yield from _block(config, f"encoder/block_{i}", _numbered("transformer_encoder", i))
    yield from _dense("pooler", "dense_1")


def distilbert(config):
    """Yield the weights of a DistilBERT."""
    layer = "token_and_position_embedding"
    yield from _table("embeddings/token_table", f"{layer}/token_embedding")
    yield from _table("embeddings/position_table", f"{layer}/position_embedding")
    yield from _norm("embeddings/norm", "layer_normalization")
    yield from _blocks(config)


POSITIONS = "token_and_position_embedding/position_embedding"


def roberta(config):
    """Yield the weights of a RoBERTa, whose positions are made from those that are stored."""
    for weight in distilbert(config):
        is_table = weight.path == "embeddings/position_table"
        yield dataclasses.replace(weight, name="positions") if is_table else weight
    yield Weight("embeddings/segment_table", "segments")


def roberta_tables(config, read_tensor):
    """Return the rows before the first position and a segment, which keras-hub lacks."""
    before = np.zeros((config.pad_token_id + 1, config.hidden_dim), "float32")
    segments = np.zeros((1, config.hidden_dim), "float32")
    rows, stored = config.max_length + len(before), f"layers/{POSITIONS}/vars/0"
    return {
        "positions": ((rows, config.hidden_dim), lambda: np.r_[before, read_tensor(stored)]),
        "segments": (segments.shape, lambda: segments),
    }


def deberta(config):
    """Yield the weights of a DeBERTa v3."""
    yield from _table("embeddings/token_table", "reversible_embedding")
    yield from _norm("embeddings/norm", "layer_normalization")
    yield from _table("relative_positions/table", "relative_embedding")
    yield from _norm("relative_positions/norm", "relative_embedding/layer_norm")
    yield from _blocks(config, "disentangled_attention_encoder", "_")


def xlnet(config):
    """Yield the weights of an XLNet."""
    cube = (config.hidden_dim, config.num_heads, config.hidden_dim // config.num_heads)
    yield from _table("embeddings/token_table", "content_and_query_embedding/word_embed")
    yield from _table("embeddings/query_vector", "xl_net_attention_mask_layer")
    for i in range(config.num_layers):
        ours, layer = f"encoder_{i}", _numbered("xl_net_encoder", i)
        parts = {"query": "query", "key": "key", "value": "value", "position": "_encoding"}
        for part, name in parts.items():
            name = f"layers/{layer}/relative_attention/{name}_dense/vars/0"
            yield Weight(f"{ours}/attention/{part}/kernel", name, shape=cube)
        name = f"layers/{layer}/relative_attention/output_dense/vars/0"
        yield Weight(f"{ours}/attention/output/kernel", name, transpose=True, shape=cube)
        variables = ("content_bias", "position_bias", "segment_bias", "segment_table")
        for k, part in enumerate(variables):
            yield Weight(f"{ours}/attention/{part}", f"layers/{layer}/vars/{k}")
        yield from _norm(f"{ours}/attention_norm", f"{layer}/layer_norm")
        for part in ("intermediate", "output"):
            yield from _dense(f"{ours}/feed_forward/{part}", f"{layer}/feedforward_{part}_dense")
        yield from _norm(f"{ours}/feed_forward_norm", f"{layer}/layer_norm_ff")


def gpt2(config):
    """Yield the weights of a GPT-2."""
    yield from _table("embeddings/token_table", "reversible_embedding")
    yield from _table("embeddings/position_table", "position_embedding")
    yield from _blocks(config, "transformer_decoder")
    yield from _norm("final_norm", "layer_normalization")


def classifier(has_pooler):
    """Yield a `TextClassifier`'s own weights, with the pooler if the backbone has none."""
    layers = ["classifier"] if has_pooler else ["pooler", "classifier"]
    for i, path in enumerate(layers):
        for weight in _dense(path, _numbered("dense", i), head=True):
            yield dataclasses.replace(weight, name=TASK + weight.name)
