"""Weight clustering, with the centroids of scikit-learn's k-means."""

import keras
import numpy as np
import tensorflow as tf
from sklearn.cluster import KMeans

from distill.compression.block_kernels import block_kernels, kernels_to_compress

# Cells of a kernel's values for k-means: so many of equal width, and as many of equal counts.
CELLS = 2048


class Clusterer(keras.layers.Layer):
    """Clustering of a model's kernels: each weight takes the value of its centroid.

    Han et al. 2016, 'Deep Compression', section 3 and eq. 3. Weights of a cluster share their
    value, and stay in the cluster as they train. A centroid's gradient is the sum of its weights'.
    A kernel of few values takes few bits a weight in a compressed file.

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
            centroids, nearest = cluster_weights(np.asarray(kernel), config.clusters)
            cluster = self.add_weight(
                shape=kernel.shape, dtype="int32", trainable=False, name="clusters"
            )
            cluster.assign(nearest)
            kernel.assign(np.take(centroids, nearest))
            self.clusters.append(cluster)
        self.built = True

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


def cluster_weights(weights, count):
    """Return the centroids of weights, sorted float32, and the index of the nearest for each.

    K-means runs over the means of cells, weighted by their counts: on all weights it would take
    minutes for a model.

    Args:
        weights: (D, units) float32.
        count: of the centroids; there are fewer if there are fewer values.
    """
    values = weights.ravel().astype("float64")
    parts = np.linspace(0, 1, CELLS + 1)
    widths = values.min() + parts * (values.max() - values.min())
    cells = np.searchsorted(np.union1d(widths, np.quantile(values, parts)), values)
    counts = np.bincount(cells)
    sums, counts = np.bincount(cells, values)[counts > 0], counts[counts > 0]
    search = KMeans(min(count, len(counts)), random_state=0)
    search.fit((sums / counts)[:, None], sample_weight=counts)
    centroids = np.sort(search.cluster_centers_.ravel()).astype("float32")
    borders = (centroids[1:] + centroids[:-1]) / 2
    return centroids, np.searchsorted(borders, weights).astype("int32")
