"""Which tokens are written: by the best at each place, by draws, or by beam search.

A decoder is what `CausalDecoder` and `EncoderDecoderCache` are: `start` reads the prompts, or the
sources, `step` one token more of each text; `start_token_id` is what texts begin with, None where
they go on from their prompts. The functions here hold for any, and are to be traced as one graph,
loop and all.
"""

from typing import NamedTuple

import tensorflow as tf

from tfnlp.generation.constraints import NEVER, Rules
from tfnlp.generation.sampling import draw, filtered
from tfnlp.searches import WORST, Beam, Constraints, Sample


class Found(NamedTuple):
    """The texts of a search.

    Args:
        token_ids: (B, n, steps) int32, after the end token the padding.
        lengths: (B, n) int32, the tokens of each text, its end token counted.
        scores: (B, n) float32, of beam search, where `Beam.is_text` tells which are of texts; else
            0, or minus infinity where the rules left no token at some place.
    """

    token_ids: tf.Tensor
    lengths: tf.Tensor
    scores: tf.Tensor


def search(decoder, prompt, prompt_mask, draws, how, constraints, steps, end, pad):
    """Continues prompts.

    Args:
        decoder: as a `CausalDecoder`.
        prompt: (B, P) int32, padded at the left; the source, where the decoder has a
            `start_token_id`, padded at the right.
        prompt_mask: (B, P) int32, 1 at real tokens.
        draws: (B, steps) float32 from [0, 1), for a `Sample`.
        how: `Greedy`, `Sample` or `Beam`.
        constraints: a `Constraints`.
        steps: the greatest number of new tokens.
        end: the id of the token that ends a text.
        pad: the id that stands after it.

    Returns:
        `Found`, with n texts of each prompt: `how.best` of a `Beam`, one otherwise.
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
    """One text of each prompt, token by token."""
    batch = logits.shape[0]

    def choose(logits, tokens, ended, scores, number):
        """Puts token `number` at its place, and says which texts have ended."""
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
    return Found(tokens[:, None], lengths[:, None], scores[:, None])


class _Beams(NamedTuple):
    """A beam search in progress: open texts, and the best that have ended.

    Args:
        tokens: (B, K, steps), of open texts, the best first.
        sums: (B, K), the log-probabilities of each, summed.
        parents: (B, K), which text of the step before each goes on from.
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
        """(B, 1) boolean, whether as many texts have ended as there are open ones."""
        return tf.reduce_all(self.ended_lengths > 0, axis=1, keepdims=True)


def _beam_search(decoder, logits, state, how, rules, steps, end, pad):
    """The best texts of each prompt, in the order of operations of `transformers`."""
    batch, beams, vocabulary = logits.shape[0], how.beams, logits.shape[-1]
    none = tf.fill((batch, beams, steps), pad)
    # The texts are one at first: of as many alike, the first alone counts.
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
        """The beams with one token more, of which there were `number`; logits are (B, K, V)."""
        scores = tf.nn.log_softmax(logits)
        if rules is not None:
            scores = rules(scores, found.tokens, number)
        scores = tf.reshape(scores + found.sums[:, :, None], (batch, beams * vocabulary))
        # Each text may end once, so that among twice as many there are enough that go on.
        sums, places = tf.math.top_k(scores, 2 * beams)
        parents, token = places // vocabulary, places % vocabulary
        tokens = tf.gather(found.tokens, parents, batch_dims=1)
        tokens = tf.where(tf.range(steps) == number, token[:, :, None], tokens)
        ends = (token == end) | (number == steps - 1)
        open_sums, chosen = tf.math.top_k(sums + WORST * tf.cast(ends, tf.float32), beams)

        # Only the best K may end: the others are there to go on.
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
        # Sums only fall: at a greater length a score can be better by its norm alone.
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
    return Found(tokens, lengths, found.ended_scores[:, best])
