"""A decoder that is run from outside of its graph, a token of one text at a time."""

import tensorflow as tf


class StepwiseDecoder:
    """Decoder of one text with the interface that `TextSearch` calls.

    Args:
        decoder: a `Decoder`.
        steps: the most tokens of a text.
    """

    def __init__(self, decoder, steps):
        def start(token_ids, mask):
            return decoder.start(token_ids, mask, 1, steps)

        def step(token_ids, number, state):
            return decoder.step(token_ids, None, number, state)

        options = {"jit_compile": True, "autograph": False}
        self._start, self._step = tf.function(start, **options), tf.function(step, **options)

    def start(self, token_ids, mask):
        """Read a prompt or a source of (1, L) ids, and return the first token's logits, (V,)."""
        logits, self._state = _run(self._start, tf.constant(token_ids), tf.constant(mask))
        self._number = 0
        return logits.numpy()[0]

    def step(self, token_ids, parents):
        """Read the newest id of the text, a list of one, and return the next logits, (1, V)."""
        arguments = tf.constant([token_ids]), tf.constant(self._number), self._state
        logits, self._state = _run(self._step, *arguments)
        self._number += 1
        return logits.numpy()[0]


def _run(function, *arguments):
    # Calling the function itself would warn of retracing at each new length.
    return function.get_concrete_function(*arguments)(*arguments)
