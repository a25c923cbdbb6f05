"""Arguments of one call of an attention layer, beside its tensors."""

import dataclasses

from keras import ops

from tfnlp.functional.masks import causal_mask, combine_masks
from tfnlp.functional.memory import prepend_memory
from tfnlp.functional.products import plain_product
from tfnlp.layers.core.base_layer import check_states


@dataclasses.dataclass
class AttentionCall:
    """Masks, `training` and the results asked for in one call of an attention layer.

    Args:
        query_mask: (B, T), as Keras passes it on. One of more axes is an `attention_mask`: in
            a call by position, `layer(x, x, x, mask)`, it is in this one's place.
        value_mask: (B, S); with `key_mask` both hold.
        key_mask: (B, S).
        attention_mask: as `combine_masks` takes it.
        mask: the `query_mask` where the query is the only tensor.
        use_causal_mask: whether to hide every position after the query's own.
        training: whether dropout is on.
        return_attention_scores, return_projections: what to return beside the output.
        product: the `products` of the layer for this call.

    Raises:
        ValueError: if both `query_mask` and `attention_mask` are attention masks.
    """

    query_mask: object = None
    value_mask: object = None
    key_mask: object = None
    attention_mask: object = None
    mask: object = None
    use_causal_mask: bool = False
    training: bool | None = None
    return_attention_scores: bool = False
    return_projections: bool = False
    product: object = plain_product

    def __post_init__(self):
        if self.query_mask is not None and len(self.query_mask.shape) > 2:
            if self.attention_mask is not None:
                raise ValueError(
                    f"query_mask has shape {tuple(self.query_mask.shape)}, but must have 2 axes, "
                    "(batch, target), beside an attention_mask."
                )
            self.attention_mask, self.query_mask = self.query_mask, None
        if self.query_mask is None:
            self.query_mask = self.mask

    def fill(self, query, value=None, key=None, memory=None):
        """Fill in omitted value and key, and put a memory before them.

        Args:
            query: (B, T, D).
            value: (B, L, D'); the query if None.
            key: (B, L, D'); the value if None.
            memory: (B, M, D'), or None.

        Returns:
            Key and value (B, S, D') with S = M + L, and the mask of the keys, (B, S) or None.
        """
        value_mask, key_mask = self.value_mask, self.key_mask
        if value is None:
            value, value_mask = query, self.query_mask if value_mask is None else value_mask
        if key is None:
            key = value
        check_states(query=query.shape, value=value.shape, key=key.shape)
        if key_mask is None:
            key_mask = value_mask
        elif value_mask is not None and value_mask is not key_mask:
            key_mask = ops.logical_and(key_mask, value_mask)
        return prepend_memory(memory, key, value, key_mask)

    def combine_masks(self, query, key, key_mask, num_heads=1):
        """Combine all masks into one, in the form of `combine_masks`; None for no mask."""
        mask = combine_masks(
            query.shape,
            key.shape,
            self.attention_mask,
            self.query_mask,
            key_mask,
            num_heads=num_heads,
        )
        if not self.use_causal_mask:
            return mask
        causal = causal_mask(ops.shape(query)[1], ops.shape(key)[1])
        return causal if mask is None else ops.logical_and(mask, causal)

    def results(self, output, scores, *projections):
        """Return the output, and in a tuple with it the scores and projections asked for."""
        results = [output]
        if self.return_attention_scores:
            results.append(scores)
        if self.return_projections:
            results += projections
        return tuple(results) if len(results) > 1 else output
