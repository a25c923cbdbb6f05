"""DeBERTa's table of relative positions, for several layers to share."""

from typing import Unpack

import keras
from keras import ops

from tfnlp.functional.positions import check_distances
from tfnlp.layers.core.base_layer import BaseLayer
from tfnlp.layers.core.layer_normalization import LayerNormalization
from tfnlp.layers.core.weight_options import EmbeddingsOptions


@keras.saving.register_keras_serializable("tfnlp")
class RelativePositionTable(BaseLayer):
    """DeBERTa's relative table, for several `DisentangledAttention` layers to share.

    Args:
        max_distance: as `DisentangledAttention` takes it.
        num_buckets: likewise.
        normalize: layer norm on the rows (`norm_rel_ebd` of v2 and v3).
        embeddings_initializer, embeddings_regularizer, embeddings_constraint: for the table.
        layer_norm_epsilon: of the norm.

    Call arguments:
        inputs: (..., D); only its width counts, and it joins the layer to a functional model.

    Returns:
        (2 max_distance, D), or (2 num_buckets, D).
    """

    keeps_positions = False

    def __init__(
        self,
        max_distance=512,
        num_buckets=None,
        normalize=False,
        layer_norm_epsilon=1e-7,
        **kwargs: Unpack[EmbeddingsOptions],
    ):
        super().__init__(**kwargs)
        self.max_distance = max_distance
        self.num_buckets = num_buckets
        self.normalize = normalize
        self.layer_norm_epsilon = layer_norm_epsilon
        check_distances(max_distance, num_buckets)
        self.norm = None
        if normalize:
            self.norm = LayerNormalization(
                epsilon=layer_norm_epsilon, dtype=self.dtype_policy, name="norm"
            )

    def build(self, input_shape):
        shape = (2 * (self.num_buckets or self.max_distance), input_shape[-1])
        self.table = self._weight("embeddings", "table", shape, self.embeddings_initializer)
        if self.norm is not None:
            self.norm.build(shape)

    def call(self, inputs):
        table = ops.cast(self.table, self.compute_dtype)
        return table if self.norm is None else self.norm(table)

    def compute_output_spec(self, inputs):
        return self._specs((2 * (self.num_buckets or self.max_distance), inputs.shape[-1]))
