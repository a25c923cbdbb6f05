"""The information fusion of ERNIE: tokens and the entities aligned to them."""

from typing import Unpack

import keras
from keras import ops

from tfnlp.functional.activations import get_activation
from tfnlp.functional.masks import set_mask
from tfnlp.functional.shapes import check_sizes
from tfnlp.layers.core.base_layer import BaseLayer, check_states
from tfnlp.layers.core.weight_options import WeightOptions


@keras.saving.register_keras_serializable("tfnlp")
class KnowledgeFusion(BaseLayer):
    """Fusion of each token w with its entity e, where it has one (Zhang et al. 2019, eq. 4, 5).

    `h = act(w W_t + e W_e + b)`, then `w' = act(h W_t' + b_t)` and `e' = act(h W_e' + b_e)`. A
    token without an entity has `h = act(w W_t + b)`, and its e' is zeros.

    Args:
        intermediate_dim: F, the width of h.
        activation: of h; a name from `tfnlp.functional.activations`, or a callable.
        output_activation: of both outputs, likewise; None for none, as in the paper's code, where
            a residual and a norm follow instead (see `KnowledgeBlock`).
        kernel_initializer, kernel_regularizer, kernel_constraint: for all kernels.
        bias_initializer, bias_regularizer, bias_constraint: for all biases.

    Call arguments:
        inputs: w, (B, L, D).
        entities: e, (B, L, E).
        entity_mask: (B, L), true at tokens that have an entity; all have one if None.

    Returns:
        A pair of w' (B, L, D) and e' (B, L, E).
    """

    def __init__(
        self,
        intermediate_dim,
        activation="gelu",
        output_activation="gelu",
        **kwargs: Unpack[WeightOptions],
    ):
        super().__init__(**kwargs)
        self.intermediate_dim = intermediate_dim
        self.activation = activation
        self.output_activation = output_activation
        check_sizes(intermediate_dim=intermediate_dim)
        self.activate = get_activation(activation)
        self.activate_output = get_activation(output_activation or "linear")
        self.intermediate = self._dense(intermediate_dim, "intermediate")
        self.entity_intermediate = self._dense(
            intermediate_dim, "entity_intermediate", use_bias=False
        )

    def build(self, inputs_shape, entities_shape, entity_mask_shape=None):
        check_states(inputs=inputs_shape, entities=entities_shape)
        self.intermediate.build(inputs_shape)
        self.entity_intermediate.build(entities_shape)
        self.output_dense = self._dense(inputs_shape[-1], "output")
        self.entity_output = self._dense(entities_shape[-1], "entity_output")
        for dense in (self.output_dense, self.entity_output):
            dense.build((*inputs_shape[:-1], self.intermediate_dim))

    def call(self, inputs, entities, entity_mask=None, inputs_mask=None):
        from_entities = self.entity_intermediate(entities)  # (B, L, F)
        if entity_mask is not None:
            mask = ops.cast(entity_mask, self.compute_dtype)[:, :, None]  # (B, L, 1)
            from_entities = from_entities * mask
        h = self.activate(self.intermediate(inputs) + from_entities)
        tokens, entities = (
            self.activate_output(dense(h)) for dense in (self.output_dense, self.entity_output)
        )
        if entity_mask is not None:
            entities = entities * mask
        return tokens, set_mask(entities, inputs_mask)

    def compute_output_spec(self, inputs, entities, *masks, **options):
        return self._specs(inputs.shape, entities.shape)
