"""Greedy search, sampling and beam search.

A decoder is a `CausalDecoder`, an `EncoderDecoderCache` or a similar class. Its `start` processes
the prompts or sources, and `step` one more token of each text. Its `start_token_id` is the first
token of texts, None if they continue their prompts. The functions here work with any decoder, and
are meant to be traced as one graph including the loop.
"""

from typing import NamedTuple

import tensorflow as tf

from tfnlp.generation.constraints import NEVER, Rules
from tfnlp.generation.sampling import draw, filtered
from tfnlp.utils.generation_settings import WORST, Beam, Constraints, Sample


class SearchResult(NamedTuple):
    """Texts of a search.

    Args:
        token_ids: (B, n, steps) int32, padding after the end token.
        lengths: (B, n) int32, the tokens of each text, its end token counted.
        scores: (B, n) float32. For beam search `Beam.is_text` tells which belong to texts.
            Otherwise 0, or minus infinity where the constraints left no token at some position.
    """

    token_ids: tf.Tensor
    lengths: tf.Tensor
    scores: tf.Tensor


def search(decoder, prompt, prompt_mask, draws, how, constraints, steps, end, pad):
    """Continue prompts by a search.

    Args:
        decoder: as a `CausalDecoder`.
        prompt: (B, P) int32, padded at the left; for a decoder with a `start_token_id` the source,
            padded at the right.
        prompt_mask: (B, P) int32, 1 at real tokens.
        draws: (B, steps) float32 from [0, 1), for a `Sample`.
        how: `Greedy`, `Sample` or `Beam`.
        constraints: a `Constraints`.
        steps: the greatest number of new tokens.
        end: the id of the token that ends a text.
        pad: the id after the end token.

    Returns:
        `SearchResult`, with n texts of each prompt: `how.best` of a `Beam`, one otherwise.
    """
    beams = how.beams if isinstance(how, Beam) else 1
    rules = None
    if constraints != Constraints():
        given = prompt, prompt_mask
        if decoder.start_token_id is not None:
            ones = tf.ones_like(prompt[:, :1])
            given = decoder.start_token_id * ones, ones
        rules = Rules(constraints, *given, beams, steps, end)
    logits, state = decoder.start(prompt, prompt_mask, beams, steps)
    if isinstance(how, Beam):
        return _beam_search(decoder, logits, state, how, rules, steps, end, pad)
    return _one_by_one(decoder, logits, state, draws, how, rules, steps, end, pad)


def _one_by_one(decoder, logits, state, draws, how, rules, steps, end, pad):
    """Return one text per prompt, generated token by token."""
    batch = logits.shape[0]

    def choose(logits, tokens, ended, scores, number):
        """Choose token `number`, and return the tokens, the choice, and which texts have ended."""
        if rules is not None:
            logits = rules(logits[:, None], tokens[:, None], number)[:, 0]
            possible = ended | tf.reduce_any(logits > NEVER, axis=-1)
            scores = tf.where(possible, scores, NEVER)
        if isinstance(how, Sample):
            token = draw(filtered(logits, how), draws[:, number])
        else:
            token = tf.argmax(logits, axis=-1, output_type=tf.int32)
        token = tf.where(ended, pad, token)
        tokens = tf.where(tf.range(steps) == number, token[:, None], tokens)
        return tokens, token, ended | (token == end), scores

    tokens, scores = tf.fill((batch, steps), pad), tf.zeros((batch,))
    chosen = choose(logits, tokens, tf.zeros((batch,), tf.bool), scores, 0)

    def more(number, tokens, token, ended, scores, lengths, state):
        return (number < steps) & ~tf.reduce_all(ended)

    def step(number, tokens, token, ended, scores, lengths, state):
        lengths += tf.cast(~ended, tf.int32)
        logits, state = decoder.step(token[:, None], None, number - 1, state)
        chosen = choose(logits[:, 0], tokens, ended, scores, number)
        return number + 1, *chosen, lengths, state

    carried = (1, *chosen, tf.ones((batch,), tf.int32), state)
    _, tokens, _, _, scores, lengths, _ = tf.while_loop(more, step, carried)
    return SearchResult(tokens[:, None], lengths[:, None], scores[:, None])


class _Beams(NamedTuple):
    """State of a beam search: open texts, and the best ended ones.

    Args:
        tokens: (B, K, steps), of open texts, the best first.
        sums: (B, K), sum of log-probabilities of each text.
        parents: (B, K), the text of the previous step that each text continues.
        ended_tokens: (B, K, steps), of texts that have ended.
        ended_scores: (B, K), divided by the norm of the length; `WORST` where there is none.
        ended_lengths: (B, K).
        hopeful: (B, 1) boolean, whether an open text may still be among the best.
    """

    tokens: tf.Tensor
    sums: tf.Tensor
    parents: tf.Tensor
    ended_tokens: tf.Tensor
    ended_scores: tf.Tensor
    ended_lengths: tf.Tensor
    hopeful: tf.Tensor

    @property
    def full(self):
        """(B, 1) boolean, true where K texts have ended."""
        return tf.reduce_all(self.ended_lengths > 0, axis=1, keepdims=True)


def _beam_search(decoder, logits, state, how, rules, steps, end, pad):
    """Return the best texts of each prompt, with the order of operations of `transformers`."""
    batch, beams, vocabulary = logits.shape[0], how.beams, logits.shape[-1]
    none = tf.fill((batch, beams, steps), pad)
    # All K texts are equal at first, so only the first counts.
    first = tf.where(tf.range(beams) == 0, 0.0, WORST)
    found = _Beams(
        tokens=none,
        sums=tf.tile(first[None], (batch, 1)),
        parents=tf.zeros((batch, beams), tf.int32),
        ended_tokens=none,
        ended_scores=tf.fill((batch, beams), WORST),
        ended_lengths=tf.zeros((batch, beams), tf.int32),
        hopeful=tf.ones((batch, 1), tf.bool),
    )

    def extend(found, logits, number):
        """Extend texts of `number` tokens by one token, given logits (B, K, V)."""
        scores = tf.nn.log_softmax(logits)
        if rules is not None:
            scores = rules(scores, found.tokens, number)
        scores = tf.reshape(scores + found.sums[:, :, None], (batch, beams * vocabulary))
        # Each text has one ending, so 2 * K candidates hold at least K open ones.
        sums, places = tf.math.top_k(scores, 2 * beams)
        parents, token = places // vocabulary, places % vocabulary
        tokens = tf.gather(found.tokens, parents, batch_dims=1)
        tokens = tf.where(tf.range(steps) == number, token[:, :, None], tokens)
        ends = (token == end) | (number == steps - 1)
        open_sums, chosen = tf.math.top_k(sums + WORST * tf.cast(ends, tf.float32), beams)

        # Only the best K candidates may end; the others are kept as continuations.
        ends &= tf.range(2 * beams) < beams
        length = tf.cast(number + 1, tf.float32)
        closed = ~found.hopeful
        if how.early_stopping is True:
            closed |= found.full
        scores = sums / how.norm(length) + WORST * tf.cast(closed, tf.float32)
        scores += WORST * tf.cast(~ends, tf.float32)
        scores = tf.concat([found.ended_scores, scores], axis=1)
        ended_scores, kept = tf.math.top_k(scores, beams)
        lengths = tf.concat([found.ended_lengths, tf.where(ends, number + 1, 0)], axis=1)
        found = _Beams(
            tokens=tf.gather(tokens, chosen, batch_dims=1),
            sums=open_sums,
            parents=tf.gather(parents, chosen, batch_dims=1),
            ended_tokens=tf.gather(
                tf.concat([found.ended_tokens, tokens], axis=1), kept, batch_dims=1
            ),
            ended_scores=ended_scores,
            ended_lengths=tf.gather(lengths, kept, batch_dims=1),
            hopeful=found.hopeful,
        )
        # Sums only fall, so a longer text can improve its score only by the norm.
        final = tf.constant(float(steps))
        at_length = final if how.early_stopping == "never" and how.length_penalty > 0 else length
        worst = tf.reduce_min(found.ended_scores, axis=1, keepdims=True)
        worst = tf.where(found.full, worst, WORST)
        hopeful = found.hopeful & (found.sums[:, :1] / how.norm(at_length) > worst)
        return found._replace(hopeful=hopeful)

    def more(number, found, state):
        going = (number < steps) & tf.reduce_any(found.hopeful)
        return going & ~tf.reduce_all(found.full) if how.early_stopping is True else going

    def step(number, found, state):
        token = tf.gather(found.tokens, number - 1, axis=2)
        logits, state = decoder.step(token, found.parents, number - 1, state)
        return number + 1, extend(found, logits, number), state

    logits = tf.broadcast_to(logits[:, None], (batch, beams, vocabulary))
    _, found, _ = tf.while_loop(more, step, (1, extend(found, logits, 0), state))
    best = slice(how.best)
    lengths = found.ended_lengths[:, best]
    tokens = tf.where(tf.range(steps) < lengths[:, :, None], found.ended_tokens[:, best], pad)
    return SearchResult(tokens, lengths, found.ended_scores[:, best])
