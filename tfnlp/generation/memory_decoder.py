"""Decoders of Transformer-XL and XLNet with a memory of earlier states."""

import abc
from typing import NamedTuple

import keras
from keras import ops

from tfnlp.generation.decoder import Decoder, by_beam, for_beams, of_parents
from tfnlp.layers import permutation_masks
from tfnlp.models import TransformerXLConfig, XLNetConfig


class Remembered(NamedTuple):
    """State of a `MemoryDecoder` between two steps; all tensors.

    Args:
        memory: inputs of each block, (B, K, M, D) each, the last position last.
        real: (B, K, M) boolean, true where a position is a token of the text.
    """

    memory: tuple
    real: object


class MemoryDecoder(Decoder):
    """Step-by-step decoder of a model with relative positions.

    Dai et al. 2019, section 3.2: each step attends to the states of earlier steps, which are not
    recomputed. They are kept until no later position sees them, so that each step returns the
    model's outputs for the whole text, up to rounding. The padding before a text is masked.
    """

    # The number of last positions that a position attends to; None for all.
    _seen = None

    def __init__(self, model):
        super().__init__(model)
        self._named = {layer.name: layer for layer in model.layers}
        self._embeddings = self._named["embeddings"]
        self._blocks = [self._named[f"encoder_{i}"] for i in range(self.config.num_layers)]

    @abc.abstractmethod
    def _read(self, token_ids, real, memory):
        """Return the logits (R, V) after tokens (R, T) and each block's inputs, (R, T, D) each.

        `real` (R, M + T) is true at the tokens of a text, in the memory and in `token_ids`.
        """

    def start(self, token_ids, prompt_mask, beams, steps):
        longest = token_ids.shape[1] + steps
        kept = min(longest, self._seen or longest)
        real = ops.cast(prompt_mask, "bool")
        logits, states = self._read(token_ids, real, None)

        def last(x):
            """Return the last `kept` positions of (B, P, ...), (B, kept, ...)."""
            x = x[:, -kept:]
            return ops.pad(x, [(0, 0), (kept - x.shape[1], 0)] + [(0, 0)] * (len(x.shape) - 2))

        state = keras.tree.map_structure(last, Remembered(tuple(states), real))
        return logits, for_beams(state, beams)

    def step(self, token_ids, parents, number, state):
        memory, real = of_parents(state, parents)
        real = ops.concatenate([real, ops.ones_like(real[:, :1])], axis=1)
        logits, states = self._read(ops.reshape(token_ids, (-1, 1)), real, memory)
        pairs = zip(memory, states, strict=True)
        memory = tuple(ops.concatenate(pair, axis=1)[:, 1:] for pair in pairs)
        return by_beam((logits, Remembered(memory, real[:, 1:])), token_ids.shape[1])


class TransformerXLDecoder(MemoryDecoder):
    """Decoder of a Transformer-XL; `same_length` limits attention to `memory_length`."""

    families = (TransformerXLConfig,)

    @property
    def _seen(self):
        return self.config.memory_length if self.config.same_length else None

    def _read(self, token_ids, real, memory):
        x, tables, projections = self._embeddings(token_ids, return_tables=True)
        seen = real[:, None, :]
        if self._seen:
            keys = ops.arange(real.shape[1])
            queries = keys[real.shape[1] - x.shape[1] :]
            seen = seen & (queries[:, None] - keys < self._seen)
        arguments = {}
        if self.config.share_biases:
            arguments["content_bias"], arguments["position_bias"] = self._named["biases"](x)
        states = []
        for i, block in enumerate(self._blocks):
            states.append(x)
            block_memory = {} if memory is None else {"memory": memory[i]}
            x = block(
                x,
                attention_mask=seen,
                use_causal_mask=True,
                attention_arguments=(arguments | block_memory) or None,
            )
        logits = self._named["lm_softmax"](
            x[:, -1:],
            tables if self.config.tie_embeddings else None,
            projections if self.config.tie_projections else None,
        )
        return ops.cast(logits[:, 0], "float32"), states


class XLNetDecoder(MemoryDecoder):
    """Decoder of an XLNet, in left-to-right order (Yang et al. 2019, section 2.3).

    The content stream of each token attends to earlier tokens. The next token is a query at one
    further position, whose content is masked. In `transformers` earlier tokens attend to later
    ones too, so that its memories differ from those of the whole text.
    """

    families = (XLNetConfig,)
    head = "permutation_lm"

    def _read(self, token_ids, real, memory):
        rows, length = token_ids.shape
        ids = ops.pad(token_ids, ((0, 0), (0, 1)))
        real = ops.pad(real, ((0, 0), (0, 1)), constant_values=True)
        mapping = ops.pad(ops.ones((rows, 1, 1)), ((0, 0), (0, 0), (length, 0)))
        content, query = self._embeddings(ids, mapping)
        order = ops.arange(real.shape[1])[None]
        masks = permutation_masks(order[:, -length - 1 :], order)
        masks = [mask & real[:, None, :] for mask in masks]
        states = []
        for i, block in enumerate(self._blocks):
            states.append(content[:, :-1])
            content, query = block(
                content,
                query,
                target_mapping=mapping,
                memory=None if memory is None else memory[i],
                segment_mask=ops.ones_like(masks[0]),
                attention_mask=masks[0],
                query_attention_mask=masks[1],
            )
        output = self._named.get("lm_output")
        logits = output(query) if output else self._embeddings(query, reverse=True)
        return ops.cast(self._named["lm_bias"](logits)[:, 0], "float32"), states
