"""One aggregator of ERNIE's knowledgeable encoder."""

from typing import Unpack

import keras
from keras import ops

from tfnlp.functional.masks import set_mask
from tfnlp.functional.recompute import recomputable
from tfnlp.layers.blocks.base_block import BaseBlock, BlockOptions, output_and_rest
from tfnlp.layers.blocks.knowledge_fusion import KnowledgeFusion
from tfnlp.layers.core.base_layer import check_states

PARTS = ("attention", "feed_forward", "entity_attention", "entity_feed_forward")


@keras.saving.register_keras_serializable("tfnlp")
class KnowledgeBlock(BaseBlock):
    """Attention among tokens and among entities, then the fusion of both.

    Zhang et al. 2019, 'ERNIE: Enhanced Language Representation with Informative Entities', section
    3.4: eq. 3 and, as in the paper's code, a fusion whose two outputs have a residual and a layer
    norm each in place of the outer activation. Without entities it is an `EncoderBlock` of the
    same weights.

    Args: those of `BaseBlock`, and
        num_entity_heads: heads of the attention among entities; must divide the width E.

    Call arguments:
        inputs: the tokens, (B, L, D).
        entities: the entities aligned to them, (B, L, E).
        attention_mask: of the tokens, as in `EncoderBlock`.
        entity_mask: (B, L), true at tokens that have an entity, which alone are attended to and
            fused; if None all have one, but those that a Keras mask hides.
        return_attention_scores, return_projections: as in `EncoderBlock`, of the tokens.

    Returns:
        A tuple of the tokens, (B, L, D), the entities, (B, L, E), zeros at tokens without one, and
        the scores, (B, N, L, L), and the projections, as asked for.

    Raises:
        ValueError: at build, if a number of heads does not divide its width.
    """

    def __init__(
        self,
        num_heads,
        intermediate_dim,
        activation="gelu",
        *,
        layer_norm_epsilon=1e-12,
        num_entity_heads=4,
        **kwargs: Unpack[BlockOptions],
    ):
        super().__init__(
            num_heads,
            intermediate_dim,
            activation,
            layer_norm_epsilon=layer_norm_epsilon,
            **kwargs,
        )
        self.num_entity_heads = num_entity_heads
        self.feed_forward = KnowledgeFusion(
            intermediate_dim,
            activation,
            output_activation=None,
            kernel_initializer=self.kernel_initializer.clone(),
            dtype=self.dtype_policy,
            name="feed_forward",
            **self.options(),
        )
        self.norms = {part: self._norm(f"{part}_norm") for part in PARTS}
        self.dropouts = {part: self._dropout_layer(self.dropout) for part in PARTS}

    def build(self, inputs_shape, entities_shape, **shapes):
        check_states(inputs=inputs_shape, entities=entities_shape)
        self.attention = self._attention(inputs_shape[-1])
        self.attention.build(inputs_shape)
        self.entity_attention = self._attention(
            entities_shape[-1], "entity_attention", self.num_entity_heads
        )
        self.entity_attention.build(entities_shape)
        self.feed_forward.build(inputs_shape, entities_shape)
        for part, norm in self.norms.items():
            norm.build(entities_shape if part.startswith("entity") else inputs_shape)

    def _around(self, part):
        return self.norms[part], self.dropouts[part]

    @recomputable
    def call(
        self,
        inputs,
        entities,
        attention_mask=None,
        entity_mask=None,
        return_attention_scores=False,
        return_projections=False,
        training=None,
        inputs_mask=None,
    ):
        entity_mask = inputs_mask if entity_mask is None else entity_mask
        attended, further = output_and_rest(
            self.attention(
                self._before("attention", inputs),
                attention_mask=attention_mask,
                mask=inputs_mask,
                return_attention_scores=return_attention_scores,
                return_projections=return_projections,
                training=training,
            )
        )
        tokens = self._after("attention", inputs, attended, training)
        attended = self.entity_attention(
            self._before("entity_attention", entities), mask=entity_mask, training=training
        )
        entities = self._after("entity_attention", entities, attended, training)
        fused = self.feed_forward(
            self._before("feed_forward", tokens),
            self._before("entity_feed_forward", entities),
            entity_mask=entity_mask,
        )
        tokens = self._after("feed_forward", tokens, fused[0], training)
        entities = self._after("entity_feed_forward", entities, fused[1], training)
        if entity_mask is not None:
            entities = entities * ops.cast(entity_mask, entities.dtype)[:, :, None]
        return tokens, set_mask(entities, inputs_mask), *further

    def compute_output_spec(self, inputs, entities, *masks, **options):
        names = ("return_attention_scores", "return_projections")
        options = {name: options[name] for name in names if name in options}
        _, further = output_and_rest(self.attention.compute_output_spec(inputs, **options))
        return (*self._specs(inputs.shape, entities.shape), *further)
