"""Greedy search, sampling and beam search for one text at a time, in NumPy.

`search_algorithms.py` has the same for batches, in TensorFlow.
"""

import functools

import numpy as np

from tfnlp.generation import generation_settings
from tfnlp.generation.continuations import check_streams, generated, no_output
from tfnlp.generation.generation_settings import NEVER, Beam, Constraints, Sample
from tfnlp.generation.numpy_rules import TextRules, draw, filtered, log_softmax
from tfnlp.generation.text_stream import TextStream

WORST = np.float32(generation_settings.WORST)
# Number of rows into which `best_places` folds scores.
ROWS = 32


class TextSearch:
    """Search that writes the texts of one prompt, token by token.

    Args:
        decoder: with a method `step(token_ids, parents)`, such as that of `CachedDecoder` in
            `distill.runtime.cached_decoder`.
        settings: a `SearchSettings`.
    """

    def __init__(self, decoder, settings):
        self.decoder, self.settings = decoder, settings

    def __call__(self, start, prompt, text_of, number=0, on_token=None):
        """Return the `Generated` texts of a prompt, the best first.

        Args:
            start: function without arguments by which the decoder reads the prompt, and which
                returns the logits of the first token, (V,).
            prompt: the ids before the text that constraints look at, a list.
            text_of: function from generated ids to their text.
            number: the number of the prompt, on which samples depend.
            on_token: function of the prompt's number, a token's id and the text that it completes,
                as `TextStream` has it; or None.

        Raises:
            InputError: if `on_token` is called for more than one text of a prompt, or the
                constraints leave no text.
        """
        settings, stream = self.settings, None
        if on_token is not None:
            check_streams(settings.strategy)
            on_token = functools.partial(on_token, number)
        if on_token is not None or settings.stop_strings:
            stream = functools.partial(TextStream, text_of, settings, on_token)
        rules = TextRules(settings, prompt) if settings.constraints != Constraints() else None
        if isinstance(settings.strategy, Beam):
            texts = beam_search(self.decoder, start(), settings, rules)
        else:
            texts = list(self._each_copy(start, rules, number, stream))
        if not texts or not all(ids for ids, _ in texts):
            raise no_output(number)
        return [generated(ids, score, settings, text_of) for ids, score in texts]

    def _each_copy(self, start, rules, number, stream):
        """Yield (ids, None) of each text of greedy search or sampling; no ids if none may come."""
        strategy, steps = self.settings.strategy, self.settings.steps
        samples = isinstance(strategy, Sample)
        for copy in range(strategy.texts if samples else 1):
            draws = strategy.draws(number, copy, steps) if samples else None
            more = {"draws": draws, "stream": stream and stream()}
            yield one_by_one(self.decoder, start(), self.settings, rules, **more), None


def one_by_one(decoder, logits, settings, rules=None, draws=None, stream=None):
    """Generate the ids of a text token by token, the most probable one or a sampled one.

    Args:
        decoder: as in `TextSearch`.
        logits: (V,) of the first token.
        settings: a `SearchSettings`.
        rules: `TextRules`, or None.
        draws: (steps,) from [0, 1), for a `Sample`.
        stream: a `TextStream`, or None.

    Returns:
        A list of ids; empty if the rules leave no token at some position.
    """
    ids, strategy = [], settings.strategy
    while True:
        scores = logits
        if rules is not None:
            scores = rules(logits[None], [ids])[0]
            if not (scores > NEVER).any():
                return []
        if isinstance(strategy, Sample):
            ids.append(draw(filtered(scores, strategy), draws[len(ids)]))
        else:
            ids.append(int(np.argmax(scores)))
        last = ids[-1] in settings.ends or len(ids) == settings.steps
        if (stream is not None and stream(ids, last)) or last:
            return ids
        logits = decoder.step(ids[-1:], [0])[0]


def beam_search(decoder, logits, settings, rules=None):
    """Decode by beam search, in the order of operations of `transformers`.

    Args:
        decoder, logits, settings, rules: as in `one_by_one`.

    Returns:
        A list of (ids, score), the best first.
    """
    beam, steps = settings.strategy, settings.steps
    beams, candidates = beam.beams, settings.candidates
    logits = np.repeat(logits[None], beams, axis=0)
    # All beams start equal, so only the first counts.
    sums = np.where(np.arange(beams) == 0, np.float32(0), WORST)
    texts, parents = [[]] * beams, [0] * beams
    ended = [([], WORST)] * beams
    for number in range(steps):
        if number:
            logits = decoder.step([text[-1] for text in texts], parents)
        scores = logits if rules is not None and rules.normalize else log_softmax(logits)
        scores = scores if rules is None else rules(scores, texts)
        scores = (scores + sums[:, None]).ravel()
        # A text has an ending for each end token, so the candidates hold enough open ones.
        places = best_places(scores, candidates)
        parents, tokens = np.divmod(places, logits.shape[-1])
        sums = scores[places]
        longer = [[*texts[p], int(t)] for p, t in zip(parents, tokens, strict=True)]
        ends = np.array([t in settings.ends for t in tokens]) | (number == steps - 1)
        open_sums = sums + WORST * ends
        chosen = best_places(open_sums, beams)

        # Only the best K candidates may end; the others only replace them as open texts.
        ends &= np.arange(candidates) < beams
        of_new = sums / np.float32(beam.norm(number + 1)) + WORST * ~ends
        all_scores = np.concatenate([[score for _, score in ended], of_new]).astype("float32")
        all_texts = [ids for ids, _ in ended]
        all_texts += [text if over else [] for text, over in zip(longer, ends, strict=True)]
        ended = [(all_texts[i], all_scores[i]) for i in best_places(all_scores, beams)]
        texts, parents, sums = [longer[i] for i in chosen], parents[chosen], open_sums[chosen]

        # Sums only fall, so a longer text can score better only by its length norm.
        never = beam.early_stopping == "never" and beam.length_penalty > 0
        best_open = sums[0] / np.float32(beam.norm(steps if never else number + 1))
        full = all(ids for ids, _ in ended)
        worst = min(score for _, score in ended) if full else WORST
        if not best_open > worst or (beam.early_stopping is True and full):
            break
    texts = [(ids, float(score)) for ids, score in ended[: beam.best]]
    return [(ids, score) for ids, score in texts if beam.is_text(score, len(ids))]


def best_places(scores, count):
    """Return the indices of the `count` largest scores (n,), in order; of equal ones the first."""
    places = np.arange(len(scores))
    columns = len(scores) // ROWS
    if columns > count:
        # `count` column maxima bound the scores that matter from below. This pass costs a tenth
        # of sorting all scores.
        tops = scores[: ROWS * columns].reshape(ROWS, columns).max(axis=0)
        places = np.flatnonzero(scores >= np.partition(tops, -count)[-count])
    return places[np.argsort(-scores[places], kind="stable")][:count]
