"""Weights that share a few values, by TensorFlow Model Optimization's centroids."""

import dataclasses

import keras
import numpy as np
import tensorflow as tf

from distill.compression.pruning import Untracked, block_kernels, check_one_replica
from tfnlp.errors import InputError


@dataclasses.dataclass(frozen=True)
class ClusteringConfig:
    """How the dense kernels of a model's blocks share their values.

    Args:
        clusters: the different values of each kernel.
    """

    clusters: int

    def __post_init__(self):
        if not 2 <= self.clusters <= 256:
            raise InputError(f"clusters={self.clusters} must lie between 2 and 256.")

    def clusterer(self, model, total_steps):
        """The `Clusterer` of a model that trains."""
        return Clusterer(model, self)


class Clusterer(keras.layers.Layer):
    """Puts each weight of a model's kernels on the nearest centroid, and keeps them together.

    Han et al. 2016, 'Deep Compression', section 3: weights of a cluster share their value, and
    stay in it as they train; a cluster goes the mean way of its weights. The centroids (k-means++)
    and which is nearest are TensorFlow Model Optimization's. A kernel of few values takes few bits
    a weight once a file is compressed.

    Args:
        model: from `tfnlp.models.build_model`; its kernels are clustered at once.
        config: a `ClusteringConfig`.

    Raises:
        InputError: under several replicas, and for a model without blocks, or with fewer weights
            in a kernel than clusters.
    """

    def __init__(self, model, config):
        super().__init__(name="clusterer", trainable=False, dtype="float32")
        check_one_replica()
        self.config = config
        self.kernels = Untracked(block_kernels(model))
        if not self.kernels.items:
            raise InputError(f"Model {model.name} has no blocks of dense kernels to cluster.")
        smallest = min(np.prod(kernel.shape) for kernel in self.kernels.items)
        if smallest < config.clusters:
            raise InputError(
                f"clusters={config.clusters} are more than the {smallest} weights of a kernel; "
                "give fewer."
            )
        self.places = []
        for i, kernel in enumerate(self.kernels.items):
            centroids, nearest = self._centroids(np.asarray(kernel))
            place = self.add_weight(
                shape=kernel.shape, dtype="int32", trainable=False, name=f"place_{i}"
            )
            place.assign(nearest)
            kernel.assign(np.take(centroids, nearest))
            self.places.append(place)
        self.built = True

    def _centroids(self, weights):
        """The centroids (K,) of a matrix, and the place of the nearest for each weight."""
        # Here, as the import turns `tf.keras` into Keras 2 for the whole process.
        from tensorflow_model_optimization.python.core.clustering.keras import (
            clustering_algorithm,
            clustering_centroids,
        )

        initial = clustering_centroids.KmeansPlusPlusCentroidsInitialisation(
            tf.constant(weights), self.config.clusters
        )
        centroids = tf.Variable(tf.sort(initial.get_cluster_centroids()))
        engine = clustering_algorithm.ClusteringAlgorithm(centroids)
        # By row: the engine holds the distance of each weight from each centroid.
        nearest = [engine.get_pulling_indices(tf.constant(row)).numpy() for row in weights]
        return centroids.numpy(), np.stack(nearest).astype("int32")

    def after_step(self, number):
        """Gives the weights of each cluster their mean after a step."""
        for kernel, place in zip(self.kernels.items, self.places, strict=True):
            flat = tf.reshape(place.value, [-1])
            values = tf.reshape(kernel.value, [-1])
            means = tf.math.unsorted_segment_mean(values, flat, self.config.clusters)
            kernel.assign(tf.gather(means, place.value))

    def complete(self, number):
        """Whether the kernels have so many values after so many steps: from the start."""
        return True

    def figures(self, model):
        """{"distinct_values": the most different values that a kernel of a model has}."""
        return {"distinct_values": max(np.unique(k).size for k in block_kernels(model))}
