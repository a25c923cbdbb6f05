"""Greedy and beam search for one text at a time, in NumPy.

`tfnlp.generation.search_algorithms` has the same for batches, in TensorFlow.
"""

import numpy as np

from tfnlp.generation import generation_settings

WORST = np.float32(generation_settings.WORST)
# Number of rows into which `best_places` folds scores.
ROWS = 32


def greedy(decoder, logits, steps, end, rules=None):
    """Decode the most probable token at each step.

    Args:
        decoder: with the interface of `CachedDecoder` in `distill.runtime.cached_decoder`.
        logits: (V,) of the first token.
        steps: the maximum number of tokens.
        end: the id of the end token.
        rules: function of scores (K, V) and the number of tokens so far, to new scores; or None.

    Returns:
        A list of one (ids, None).
    """
    ids, logits = [], logits[None]
    while not ids or (len(ids) < steps and ids[-1] != end):
        if ids:
            logits = decoder.step(ids[-1:], [0])
        scores = logits if rules is None else rules(logits, len(ids))
        ids.append(int(np.argmax(scores[0])))
    return [(ids, None)]


def beam_search(decoder, logits, beam, steps, end, rules=None):
    """Decode by beam search, in the order of operations of `transformers`.

    Args:
        decoder, logits, steps, end, rules: as in `greedy`.
        beam: a `Beam`.

    Returns:
        A list of (ids, score), the best first.
    """
    beams = beam.beams
    logits = np.repeat(logits[None], beams, axis=0)
    # All beams start equal, so only the first counts.
    sums = np.where(np.arange(beams) == 0, np.float32(0), WORST)
    texts, parents = [[]] * beams, [0] * beams
    ended, hopeful = [([], WORST)] * beams, True
    for number in range(steps):
        if number:
            logits = decoder.step([text[-1] for text in texts], parents)
        # Probabilities after the rules sum to 1 again (`Constraints.renormalize`).
        scores = log_softmax(logits if rules is None else rules(logits, number))
        scores = (scores + sums[:, None]).ravel()
        # Each text may end once, so 2 * beams candidates leave enough open ones.
        places = best_places(scores, 2 * beams)
        parents, tokens = np.divmod(places, logits.shape[-1])
        sums = scores[places]
        longer = [[*texts[p], int(t)] for p, t in zip(parents, tokens, strict=True)]
        ends = (tokens == end) | (number == steps - 1)
        open_sums = sums + WORST * ends
        chosen = best_places(open_sums, beams)

        # Only the best K candidates may end; the others only replace them as open texts.
        ends &= np.arange(2 * beams) < beams
        closed = not hopeful or (beam.early_stopping is True and all(ids for ids, _ in ended))
        norm = np.float32(beam.norm(number + 1))
        of_new = sums / norm + WORST * np.float32(closed) + WORST * ~ends
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
        hopeful = bool(hopeful and best_open > worst)
        if not hopeful or (beam.early_stopping is True and full):
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


def log_softmax(logits):
    """Compute log-probabilities (K, V) of logits (K, V)."""
    x = logits - logits.max(axis=-1, keepdims=True)
    return x - np.log(np.exp(x).sum(axis=-1, keepdims=True))
