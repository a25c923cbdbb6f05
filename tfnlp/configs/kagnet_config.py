"""Sizes of schema graphs and of a KagNet, and its training."""

import dataclasses

from tfnlp.utils.settings import Settings, setting


@dataclasses.dataclass(frozen=True)
class KagNetConfig(Settings):
    """Config of a KagNet (Lin et al. 2019), of its schema graphs and its training."""

    max_edges: int = setting(
        4, "Edges of a path in the graph, at most; 0: no path, so texts alone count.", low=0
    )
    max_pairs: int = setting(4, "Pairs of linked concepts of a prompt and an ending.", low=1)
    max_paths: int = setting(2, "Paths between two concepts.", low=1)
    concept_dim: int = setting(100, "Width of random concept vectors.", low=1)
    relation_dim: int = setting(50, "Width of the vectors of relations.", low=1)
    graph_dim: int = setting(50, "Width of the two graph convolutions.", low=1)
    path_dim: int = setting(64, "Width of the LSTM over a path.", low=1)
    pair_dim: int = setting(64, "Width of the vector of a pair of concepts.", low=1)
    dropout: float = setting(0.1, "Share of activations dropped in training.", low=0, below=1)
    epochs: int = setting(6, "Passes over the training file.", low=1)
    batch_size: int = setting(32, "Questions in a step.", low=1)
    learning_rate: float = setting(1e-3, "Learning rate of AdamW.", above=0)
    weight_decay: float = setting(1e-4, "Weight decay of AdamW.", low=0)
    seed: int = setting(0, "Seed of weights, order and dropout.", low=0)
