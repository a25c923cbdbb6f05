"""Greedy search, sampling and beam search.

The functions here work with any `tfnlp.generation.decoder.Decoder`, and are meant to be traced as
one graph including the loop.
"""

from typing import NamedTuple

import tensorflow as tf

from tfnlp.generation.constraints import Rules
from tfnlp.generation.generation_settings import NEVER, WORST, Beam, Constraints, Sample
from tfnlp.generation.sampling import draw, filtered


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


def search(decoder, prompt, prompt_mask, draws, settings):
    """Continue prompts by a search.

    Args:
        decoder: a `Decoder`.
        prompt: (B, P) int32, padded at the left; for a decoder with a `start_token_id` the source,
            padded at the right.
        prompt_mask: (B, P) int32, 1 at real tokens.
        draws: (B, steps) float32 from [0, 1), for a `Sample`.
        settings: a `SearchSettings`.

    Returns:
        `SearchResult`, with n texts of each prompt: `best` of a `Beam`, one otherwise.
    """
    strategy = settings.strategy
    count = strategy.beams if isinstance(strategy, Beam) else 1
    rules = None
    if settings.constraints != Constraints():
        first, mask = prompt, prompt_mask
        if decoder.start_token_id is not None:
            mask = tf.ones_like(prompt[:, :1])
            first = decoder.start_token_id * mask
        rules = Rules(settings, first, mask, count)
    logits, state = decoder.start(prompt, prompt_mask, count, settings.steps)
    if isinstance(strategy, Beam):
        return _beam_search(decoder, logits, state, rules, settings)
    return _one_by_one(decoder, logits, state, draws, rules=rules, settings=settings)


def is_end(token, settings):
    """Return whether tokens, of any shape, end a text."""
    return tf.reduce_any(token[..., None] == tf.constant(settings.ends), axis=-1)


def _one_by_one(decoder, logits, state, draws, rules, settings):
    """Return one text per prompt, generated token by token."""
    batch, steps, pad = logits.shape[0], settings.steps, settings.pad

    def choose(logits, tokens, ended, scores, number):
        """Choose token `number`, and return the tokens, the choice, and which texts have ended."""
        if rules is not None:
            logits = rules(logits[:, None], tokens[:, None], number)[:, 0]
            possible = ended | tf.reduce_any(logits > NEVER, axis=-1)
            scores = tf.where(possible, scores, NEVER)
        if isinstance(settings.strategy, Sample):
            token = draw(filtered(logits, settings.strategy), draws[:, number])
        else:
            token = tf.argmax(logits, axis=-1, output_type=tf.int32)
        token = tf.where(ended, pad, token)
        tokens = tf.where(tf.range(steps) == number, token[:, None], tokens)
        return tokens, token, ended | is_end(token, settings), scores

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


def _beam_search(decoder, logits, state, rules, settings):
    """Return the best texts of each prompt, with the order of operations of `transformers`."""
    strategy, steps = settings.strategy, settings.steps
    batch, vocabulary = logits.shape

    def more(number, beams, state):
        going = (number < steps) & tf.reduce_any(beams.hopeful)
        return going & ~tf.reduce_all(beams.full) if strategy.early_stopping is True else going

    def step(number, beams, state):
        token = tf.gather(beams.tokens, number - 1, axis=2)
        logits, state = decoder.step(token, beams.parents, number - 1, state)
        return number + 1, _extend(beams, logits, number, rules, settings), state

    logits = tf.broadcast_to(logits[:, None], (batch, strategy.beams, vocabulary))
    beams = _extend(_first_beams(batch, settings), logits, 0, rules, settings)
    _, beams, _ = tf.while_loop(more, step, (1, beams, state))
    best = slice(strategy.best)
    lengths = beams.ended_lengths[:, best]
    is_token = tf.range(steps) < lengths[:, :, None]
    tokens = tf.where(is_token, beams.ended_tokens[:, best], settings.pad)
    return SearchResult(tokens, lengths, beams.ended_scores[:, best])


def _first_beams(batch, settings):
    """Return the state of a beam search before the first token."""
    count = settings.strategy.beams
    empty = tf.fill((batch, count, settings.steps), settings.pad)
    # All K texts are equal at first, so only the first counts.
    first = tf.where(tf.range(count) == 0, 0.0, WORST)
    return _Beams(
        tokens=empty,
        sums=tf.tile(first[None], (batch, 1)),
        parents=tf.zeros((batch, count), tf.int32),
        ended_tokens=empty,
        ended_scores=tf.fill((batch, count), WORST),
        ended_lengths=tf.zeros((batch, count), tf.int32),
        hopeful=tf.ones((batch, 1), tf.bool),
    )


def _extend(beams, logits, number, rules, settings):
    """Extend texts of `number` tokens by one token, given logits (B, K, V)."""
    batch, count, vocabulary = logits.shape
    scores = tf.nn.log_softmax(logits)
    if rules is not None:
        scores = rules(scores, beams.tokens, number)
    scores = tf.reshape(scores + beams.sums[:, :, None], (batch, count * vocabulary))
    # A text has an ending for each end token, so the candidates hold at least K open ones.
    sums, places = tf.math.top_k(scores, settings.candidates)
    parents, token = places // vocabulary, places % vocabulary
    tokens = tf.gather(beams.tokens, parents, batch_dims=1)
    tokens = tf.where(tf.range(settings.steps) == number, token[:, :, None], tokens)
    ends = is_end(token, settings) | (number == settings.steps - 1)
    open_sums, chosen = tf.math.top_k(sums + WORST * tf.cast(ends, tf.float32), count)
    beams = _with_ended(beams, tokens, sums, ends, number, strategy=settings.strategy)
    beams = beams._replace(
        tokens=tf.gather(tokens, chosen, batch_dims=1),
        sums=open_sums,
        parents=tf.gather(parents, chosen, batch_dims=1),
    )
    return beams._replace(hopeful=_hopeful(beams, number, settings))


def _with_ended(beams, tokens, sums, ends, number, strategy):
    """Return the beams with the best of the ended texts, earlier ones and those that end now.

    The C candidates of one more token are `tokens` (B, C, steps), `sums` (B, C) descending, and
    `ends` (B, C), true where a candidate ends.
    """
    # Only the best K candidates may end; the others are kept as continuations.
    ends &= tf.range(ends.shape[1]) < strategy.beams
    closed = ~beams.hopeful
    if strategy.early_stopping is True:
        closed |= beams.full
    length = tf.cast(number + 1, tf.float32)
    scores = sums / strategy.norm(length) + WORST * tf.cast(closed, tf.float32)
    scores += WORST * tf.cast(~ends, tf.float32)
    scores = tf.concat([beams.ended_scores, scores], axis=1)
    ended_scores, kept = tf.math.top_k(scores, strategy.beams)
    lengths = tf.concat([beams.ended_lengths, tf.where(ends, number + 1, 0)], axis=1)
    tokens = tf.concat([beams.ended_tokens, tokens], axis=1)
    return beams._replace(
        ended_tokens=tf.gather(tokens, kept, batch_dims=1),
        ended_scores=ended_scores,
        ended_lengths=tf.gather(lengths, kept, batch_dims=1),
    )


def _hopeful(beams, number, settings):
    """Return whether an open text may still be among the best, (B, 1) boolean."""
    strategy = settings.strategy
    # Sums only fall, so a longer text can improve its score only by the norm.
    length = tf.cast(number + 1, tf.float32)
    if strategy.early_stopping == "never" and strategy.length_penalty > 0:
        length = tf.constant(float(settings.steps))
    worst = tf.reduce_min(beams.ended_scores, axis=1, keepdims=True)
    worst = tf.where(beams.full, worst, WORST)
    return beams.hopeful & (beams.sums[:, :1] / strategy.norm(length) > worst)
