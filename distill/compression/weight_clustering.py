"""Weight clustering, with the centroids of TensorFlow Model Optimization."""

import dataclasses

import keras
import numpy as np
import tensorflow as tf

from distill.compression.block_kernels import block_kernels, kernels_to_compress
from tfnlp.utils.settings import Settings, setting


@dataclasses.dataclass(frozen=True)
class ClusteringConfig(Settings):
    """Settings for clustering the dense kernels of a model's blocks.

    Args:
        clusters: the number of distinct values of each kernel, 2 to 256.
    """

    clusters: int = setting(16, "Distinct values of each kernel.", low=2, high=256)

    def clusterer(self, model, total_steps):
        """Return the `Clusterer` of a model in training."""
        return Clusterer(model, self)


class Clusterer(keras.layers.Layer):
    """Clustering of a model's kernels: each weight takes the value of its centroid.

    Han et al. 2016, 'Deep Compression', section 3 and eq. 3. Weights of a cluster share their
    value, and stay in the cluster as they train. A centroid's gradient is the sum of its weights'.
    TensorFlow Model Optimization computes the centroids (k-means++) and assigns the nearest. A
    kernel of few values takes few bits a weight in a compressed file.

    Args:
        model: from `tfnlp.models.build_model`; its kernels are clustered at once.
        config: a `ClusteringConfig`.

    Raises:
        InputError: if there are several replicas, or the model has no blocks.
    """

    def __init__(self, model, config):
        super().__init__(name="clusterer", trainable=False, dtype="float32")
        self.config = config
        self.kernels = kernels_to_compress(model, "cluster")
        self.clusters = []
        for kernel in self.kernels.items:
            centroids, nearest = self._centroids(np.asarray(kernel))
            cluster = self.add_weight(
                shape=kernel.shape, dtype="int32", trainable=False, name="clusters"
            )
            cluster.assign(nearest)
            kernel.assign(np.take(centroids, nearest))
            self.clusters.append(cluster)
        self.built = True

    def _centroids(self, weights):
        """Return the centroids (K,) of a matrix, and the index of the nearest for each weight."""
        # Imported late: the import turns `tf.keras` into Keras 2 for the whole process.
        from tensorflow_model_optimization.python.core.clustering.keras import (
            clustering_algorithm,
            clustering_centroids,
        )

        initial = clustering_centroids.KmeansPlusPlusCentroidsInitialisation(
            tf.constant(weights), self.config.clusters
        )
        centroids = tf.Variable(tf.sort(initial.get_cluster_centroids()))
        engine = clustering_algorithm.ClusteringAlgorithm(centroids)
        # Row by row, since the engine stores the distance of each weight from each centroid.
        nearest = [engine.get_pulling_indices(tf.constant(row)).numpy() for row in weights]
        return centroids.numpy(), np.stack(nearest).astype("int32")

    def before_step(self, gradients, variables):
        """Return gradients in which the weights of each cluster share that of their centroid.

        A weight's is the sum over its cluster of n weights by sqrt(n), so that the global norm
        counts each centroid once. Optimizers like Adam's do not see the factor.
        """
        clusters = {
            id(kernel): cluster
            for kernel, cluster in zip(self.kernels.items, self.clusters, strict=True)
        }
        return [
            self._summed(gradient, clusters[id(variable)])
            if id(variable) in clusters
            else gradient
            for gradient, variable in zip(gradients, variables, strict=True)
        ]

    def _summed(self, gradient, cluster):
        indices = tf.reshape(cluster.value, [-1])
        sums = tf.math.unsorted_segment_sqrt_n(
            tf.reshape(gradient, [-1]), indices, self.config.clusters
        )
        return tf.gather(sums, cluster.value)

    def after_step(self, number):
        """Set the weights of each cluster to their mean, from which rounding parts them."""
        for kernel, cluster in zip(self.kernels.items, self.clusters, strict=True):
            weights, indices = (tf.reshape(x.value, [-1]) for x in (kernel, cluster))
            means = tf.math.unsorted_segment_mean(weights, indices, self.config.clusters)
            kernel.assign(tf.gather(means, cluster.value))

    def complete(self, number):
        """Return True: the kernels are clustered from the start."""
        return True

    def figures(self, model):
        """Return {"distinct_values": the largest number of distinct values in a kernel}."""
        return {"distinct_values": max(np.unique(kernel).size for kernel in block_kernels(model))}
