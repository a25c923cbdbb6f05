"""KagNet: scores of endings from their texts and from paths of a knowledge graph."""

import keras
import numpy as np
from keras import ops

from tfnlp.layers import (
    GatherNodes,
    GraphConvolution,
    MergeChoices,
    PathAttention,
    SplitChoices,
)


def build_kagnet(config, concept_vectors, num_relations, text_dim):
    """Build a KagNet (Lin et al. 2019, section 4).

    Two graph convolutions give the concepts of a schema graph their context, an LSTM reads each
    path as a sequence of triples, and attention sums up paths and pairs of concepts; a dense layer
    scores that beside the vector of the text. Concepts keep the vectors that they begin with.

    Args:
        config: a `KagNetConfig`.
        concept_vectors: (entities, C), the vectors of all entities of the graph.
        num_relations: the number of relations, those of reversed edges included.
        text_dim: D, the width of the vector of a prompt with an ending.

    Returns:
        A functional `keras.Model` from a dict of `text` (B, choices, D) and of the arrays that
        `tfnlp.knowledge.SchemaGraphs.arrays` gives, each (B, choices, ...), to a dict of `logits`
        (B, choices), and of the weights of `PathAttention`, `path_weights` (B * choices, Q, M) and
        `pair_weights` (B * choices, Q).
    """
    inputs = _inputs(config, text_dim)
    x = {name: MergeChoices(name=f"merge_{name}")(value) for name, value in inputs.items()}
    nodes = _encode_nodes(config, x["concepts"], x["adjacency"], concept_vectors)
    paths, is_path = _encode_paths(config, nodes, x["path_nodes"], x["relations"], num_relations)
    pairs = _encode_pairs(config, nodes, x["pair_nodes"], x["text"])
    attention = PathAttention(name="path_attention")
    graph, path_weights, pair_weights = attention(x["text"], pairs, paths, is_path)
    vectors = ops.concatenate([graph, x["text"]], axis=-1)
    vectors = keras.layers.Dropout(config.dropout, name="dropout")(vectors)
    scores = keras.layers.Dense(1, dtype="float32", name="scores")(vectors)
    logits = SplitChoices(dtype="float32", name="choices")(scores, inputs["text"])
    outputs = {"logits": logits, "path_weights": path_weights, "pair_weights": pair_weights}
    return keras.Model(inputs, outputs, name="kagnet")


def _inputs(config, text_dim):
    """Return the inputs by name; Q pairs, M paths of a pair, K edges of a path."""
    pairs, paths, edges = config.max_pairs, config.max_paths, max(1, config.max_edges)
    shapes = {
        "concepts": (None,),
        "adjacency": (None, None),
        "pair_nodes": (pairs, 2),
        "path_nodes": (pairs, paths, edges + 1),
        "relations": (pairs, paths, edges),
    }
    inputs = {
        name: keras.Input((None, *shape), dtype="int32", name=name)
        for name, shape in shapes.items()
    }
    return {"text": keras.Input((None, text_dim), name="text")} | inputs


def _encode_nodes(config, concepts, adjacency, vectors):
    """Return the vectors of nodes beside those of their neighbourhood, (B, N, C + G).

    Args:
        config: a `KagNetConfig`.
        concepts: (B, N), the number of each node's entity, from 1; 0 for padding.
        adjacency: (B, N, N).
        vectors: (entities, C).
    """
    table = np.concatenate([np.zeros_like(vectors[:1]), vectors])
    embedding = keras.layers.Embedding(*table.shape, trainable=False, name="concept_embedding")
    embedding.build()
    embedding.set_weights([table])
    embedded = x = embedding(concepts)
    mask = ops.greater(concepts, 0)
    for i in range(2):
        x = GraphConvolution(config.graph_dim, name=f"graph_convolution_{i}")(x, adjacency, mask)
    return ops.concatenate([embedded, x], axis=-1)


def _encode_paths(config, nodes, path_nodes, relations, num_relations):
    """Return the vectors of paths (B, Q, M, P), and which are real, (B, Q, M) boolean.

    Args:
        config: a `KagNetConfig`.
        nodes: (B, N, V).
        path_nodes: (B, Q, M, K + 1), the nodes of each path.
        relations: (B, Q, M, K), the relations of its edges, from 1; 0 for padding.
        num_relations: the number of relations.
    """
    _, pairs, paths, edges = relations.shape
    x = GatherNodes(name="gather_paths")(nodes, path_nodes)  # (B, Q, M, K + 1, V)
    embedding = keras.layers.Embedding(
        1 + num_relations, config.relation_dim, name="relation_embedding"
    )
    triples = ops.concatenate([x[..., :-1, :], embedding(relations), x[..., 1:, :]], axis=-1)
    triples = ops.reshape(triples, (-1, edges, triples.shape[-1]))
    is_edge = ops.greater(relations, 0)
    lstm = keras.layers.LSTM(config.path_dim, unroll=True, name="path_lstm")
    states = lstm(triples, mask=ops.reshape(is_edge, (-1, edges)))
    return ops.reshape(states, (-1, pairs, paths, config.path_dim)), ops.any(is_edge, axis=-1)


def _encode_pairs(config, nodes, pair_nodes, text):
    """Return T_ij of each pair of concepts, (B, Q, T), by two layers over [s; c_i; c_j].

    Args:
        config: a `KagNetConfig`.
        nodes: (B, N, V).
        pair_nodes: (B, Q, 2), the nodes of each pair.
        text: (B, D), s.
    """
    pairs = pair_nodes.shape[1]
    concepts = GatherNodes(name="gather_pairs")(nodes, pair_nodes)  # (B, Q, 2, V)
    concepts = ops.reshape(concepts, (-1, pairs, 2 * nodes.shape[-1]))
    x = ops.concatenate([ops.repeat(text[:, None], pairs, axis=1), concepts], axis=-1)
    for i, units in enumerate((2 * config.pair_dim, config.pair_dim)):
        x = keras.layers.Dense(units, activation="leaky_relu", name=f"pair_{i}")(x)
        x = keras.layers.Dropout(config.dropout, name=f"pair_dropout_{i}")(x)
    return x
