"""Transformer-XL and XLNet, which keep the memory of what they have read."""

from typing import NamedTuple

from keras import ops

from tfnlp.errors import InputError
from tfnlp.layers import permutation_masks
from tfnlp.models import TransformerXLConfig, XLNetConfig, config_of


class Remembered(NamedTuple):
    """What a `MemoryDecoder` keeps between two steps; tensors all.

    Args:
        memory: what went into each block, (B, K, M, D) each, the last position last.
        real: (B, K, M) boolean, true where a position is a token of the text.
    """

    memory: tuple
    real: object


class MemoryDecoder:
    """A model of relative positions, one step at a time, by its own layers and so its weights.

    Dai et al. 2019, section 3.2: each step attends to the states of the steps before, which are
    not computed again. They are kept until no later position sees them, so that each step gives
    what the model gives for the whole text, but for rounding. Before a text there is padding that
    nothing sees. Shapes are fixed, for XLA.

    Args:
        model: from `build_model` or `load_model`, with the head "causal_lm" of a Transformer-XL,
            or "permutation_lm" of an XLNet.

    Raises:
        InputError: for a model of another head or family.
    """

    # What the texts begin with, beside the prompt that they go on from.
    start_token_id = None

    def __init__(self, model):
        self.config = config = config_of(model)
        if type(config) is not self.FAMILY or model.head != config.language_model:
            held = f"the head {model.head!r}" if model.head else "no head"
            raise InputError(
                f"This memory is kept by {self.NAME} with the head "
                f"{self.FAMILY.language_model!r}, but the model is a {model.name} with {held}; "
                "give a language model."
            )
        self.vocabulary_size, self.max_length = config.vocabulary_size, None
        names = {layer.name: layer for layer in model.layers}
        self._embeddings = names["embeddings"]
        self._blocks = [names[f"encoder_{i}"] for i in range(config.num_layers)]
        self._named = names

    @property
    def _seen(self):
        """The last positions that one sees; all where None."""
        return None

    def start(self, token_ids, prompt_mask, beams, steps):
        """Reads prompts.

        Args:
            token_ids: (B, P) integers, padded at the left.
            prompt_mask: (B, P), 1 or true at real tokens, at least one in each row.
            beams: K, the texts of each prompt.
            steps: how many tokens will be read of each at most.

        Returns:
            The logits of what comes after the prompts, (B, V) float32, and a `Remembered`.
        """
        _, length = token_ids.shape
        kept = min(length + steps, self._seen or length + steps)
        real = ops.cast(prompt_mask, "bool")
        logits, states = self._read(token_ids, real, None)

        def remembered(x):
            """The last `kept` positions of (B, P, ...), for each text: (B, K, kept, ...)."""
            x = x[:, -kept:]
            x = ops.pad(x, [(0, 0), (kept - x.shape[1], 0)] + [(0, 0)] * (len(x.shape) - 2))
            return ops.repeat(x[:, None], beams, axis=1)

        return logits, Remembered(tuple(map(remembered, states)), remembered(real))

    def step(self, token_ids, parents, number, state):
        """Reads one more token of each text.

        Args:
            token_ids: (B, K) integers.
            parents: (B, K) integers, the text of the step before that each text goes on from; None
                where each goes on from itself.
            number: of the step, which the memory knows by itself.
            state: the `Remembered` of the step before.

        Returns:
            The logits of what comes next, (B, K, V) float32, and a `Remembered`.
        """
        batch, beams, kept = state.real.shape
        if parents is not None:
            places = parents + beams * ops.arange(batch, dtype="int32")[:, None]
            state = Remembered(*_map(lambda x: _rows(x, places), state))
        memory, real = _map(lambda x: ops.reshape(x, (batch * beams, *x.shape[2:])), state)
        ids = ops.reshape(token_ids, (batch * beams, 1))
        real = ops.concatenate([real, ops.ones_like(real[:, :1])], axis=1)
        logits, states = self._read(ids, real, memory)

        def moved(before, now):
            """(B, K, kept, ...) with a position more, and without the first."""
            x = ops.concatenate([before, now], axis=1)[:, 1:]
            return ops.reshape(x, (batch, beams, *x.shape[1:]))

        memory = tuple(moved(*pair) for pair in zip(memory, states, strict=True))
        real = ops.reshape(real[:, 1:], (batch, beams, kept))
        return ops.reshape(logits, (batch, beams, -1)), Remembered(memory, real)


class TransformerXLDecoder(MemoryDecoder):
    """A Transformer-XL that remembers; with `same_length` the last `memory_length` positions."""

    FAMILY, NAME = TransformerXLConfig, "a Transformer-XL"

    @property
    def _seen(self):
        return self.config.memory_length if self.config.same_length else None

    def _read(self, token_ids, real, memory):
        """The logits (R, V) after tokens (R, T), and what went into each block, (R, T, D) each.

        `real` (R, M + T) is true at the tokens of a text, in the memory and of `token_ids`.
        """
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
            own = {} if memory is None else {"memory": memory[i]}
            x = block(
                x,
                attention_mask=seen,
                use_causal_mask=True,
                attention_arguments=(arguments | own) or None,
            )
        logits = self._named["lm_softmax"](
            x[:, -1:],
            tables if self.config.tie_embeddings else None,
            projections if self.config.tie_projections else None,
        )
        return ops.cast(logits[:, 0], "float32"), states


class XLNetDecoder(MemoryDecoder):
    """An XLNet that remembers, in the order of reading (Yang et al. 2019, section 2.3).

    Each token's content sees what is before it; what is to come is a query of one position more,
    whose content nothing sees. In `transformers` earlier tokens see later ones, too, so that
    none of its memories is what the whole text gives.
    """

    FAMILY, NAME = XLNetConfig, "an XLNet"

    def _read(self, token_ids, real, memory):
        """As `TransformerXLDecoder._read`."""
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


def _map(function, state):
    """A function of a `Remembered`'s tensors: of all memories, a tuple, and of `real`."""
    return tuple(map(function, state.memory)), function(state.real)


def _rows(x, places):
    """Of (B, K, ...) the texts that `places` (B, K) says, counted through the batch."""
    flat = ops.reshape(x, (-1, *x.shape[2:]))
    return ops.take(flat, places, axis=0)
