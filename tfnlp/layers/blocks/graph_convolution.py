"""Convolution over the nodes of a graph."""

from typing import Unpack

import keras
from keras import ops

from tfnlp.functional.activations import get_activation
from tfnlp.layers.core.base_layer import BaseLayer
from tfnlp.layers.core.weight_options import WeightOptions


@keras.saving.register_keras_serializable("tfnlp")
class GraphConvolution(BaseLayer):
    """`act(W_self h_i + b + sum_j W h_j / |N_i|)` over the neighbours j in N_i of each node i.

    Lin et al. 2019, 'KagNet', section 4.1, after Kipf & Welling 2017; their W alone is the case
    of W_self = W and an edge from each node to itself.

    Args:
        units: width of the output.
        activation: name from `tfnlp.functional.activations`, or a callable.
        kernel_initializer, kernel_regularizer, kernel_constraint: for both kernels.
        bias_initializer, bias_regularizer, bias_constraint: for b.

    Call arguments:
        nodes: (B, L, D).
        adjacency: (B, L, L), row i non-zero at the neighbours of node i. A number is the weight
            of its edge, above 0, and |N_i| the sum of the weights.
        node_mask: (B, L), 1 at real nodes; the Keras mask of the nodes if None.

    Returns:
        (B, L, units), zeros at nodes that are not real.
    """

    def __init__(self, units, activation="relu", **kwargs: Unpack[WeightOptions]):
        super().__init__(**kwargs)
        self.units = units
        self.activation = activation
        self.activate = get_activation(activation)
        self.node_dense = self._dense(units, "node_dense")
        self.neighbour_dense = self._dense(units, "neighbour_dense", use_bias=False)

    def build(self, nodes_shape, adjacency_shape=None, node_mask_shape=None):
        self.node_dense.build(nodes_shape)
        self.neighbour_dense.build(nodes_shape)

    def call(self, nodes, adjacency, node_mask=None, nodes_mask=None):
        weights = ops.cast(adjacency, self.compute_dtype)  # (B, L, L)
        node_mask = nodes_mask if node_mask is None else node_mask
        if node_mask is not None:
            real = ops.cast(node_mask, self.compute_dtype)
            weights = weights * real[:, None]
        total = ops.sum(weights, axis=-1, keepdims=True)
        # Of a node without neighbours the sum is zero, and so is the mean.
        mean = ops.matmul(weights, nodes) / ops.maximum(total, keras.config.epsilon())
        x = self.activate(self.node_dense(nodes) + self.neighbour_dense(mean))
        return x if node_mask is None else x * real[:, :, None]

    def compute_output_spec(self, nodes, adjacency, node_mask=None, **kwargs):
        return self._specs((*nodes.shape[:-1], self.units))
