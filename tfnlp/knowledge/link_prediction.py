"""Filtered ranks of held-out triples."""

import collections

import numpy as np

from tfnlp.utils.progress import progress_bar

HITS = (1, 3, 10)


def mean_ranks(scores, targets, excluded):
    """Return the rank of each target among the candidates of its row, (B,).

    Candidates that score as the target share their ranks: the rank is the mean of the best and
    the worst (PyKEEN's realistic rank; Berrendorf et al. 2020). A candidate or a target that
    scores NaN never counts for the target.

    Args:
        scores: (B, E), higher is better.
        targets: (B,), the columns of the right answers.
        excluded: (B, E), whether a candidate is left out; targets never are.
    """
    rows = np.arange(len(scores))
    target_scores = scores[rows, targets][:, None]
    kept = ~excluded
    kept[rows, targets] = True
    better = (~(scores <= target_scores) & kept).sum(1)
    equal = ((scores == target_scores) & kept).sum(1)  # with the target
    return better + (1 + equal) / 2


def score_links(model, triples, known, batch_size=32):
    """Score the prediction of the tail and of the head of each triple (Bordes et al. 2013).

    The candidates are all entities but those of other known triples (the filtered setting).

    Args:
        model: `GraphVectors`, or an object with `num_entities` and `score(heads, relations,
            tails)`, of ids that are broadcast.
        triples: (n, 3), the held-out triples.
        known: (m, 3), all triples that are true, held-out ones too or not.
        batch_size: triples that are scored at a time.

    Returns:
        A dict of `mrr` (the mean of 1 / rank), `mean_rank`, and `hits_at_1`, `_3` and `_10` (the
        shares of ranks up to that).
    """
    tails, heads = collections.defaultdict(set), collections.defaultdict(set)
    for head, relation, tail in np.concatenate([known, triples]).tolist():
        tails[head, relation].add(tail)
        heads[relation, tail].add(head)
    candidates, ranks = np.arange(model.num_entities)[None], []
    for start in progress_bar(range(0, len(triples), batch_size), desc="links", unit="batch"):
        batch = triples[start : start + batch_size]
        head, relation, tail = np.split(batch, 3, axis=1)  # (B, 1) each
        for scores, targets, others in (
            (model.score(head, relation, candidates), tail, [tails[h, r] for h, r, _ in batch]),
            (model.score(candidates, relation, tail), head, [heads[r, t] for _, r, t in batch]),
        ):
            excluded = np.zeros((len(batch), model.num_entities), bool)
            for row, entities in enumerate(others):
                excluded[row, list(entities)] = True
            ranks.append(mean_ranks(np.asarray(scores), targets[:, 0], excluded))
    ranks = np.concatenate(ranks)
    hits = {f"hits_at_{k}": float((ranks <= k).mean()) for k in HITS}
    return {"mrr": float((1 / ranks).mean()), "mean_rank": float(ranks.mean()), **hits}
