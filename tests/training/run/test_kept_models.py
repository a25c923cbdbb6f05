"""Models that are kept beside the best; those of a killed run are in `test_training_config.py`."""

import pytest

from tfnlp.training.run.kept_models import KeptModels


@pytest.mark.parametrize(
    "every, best, scores, left",
    [
        (None, 2, {7: 0.5, 14: 0.9, 21: 0.9, 28: 0.7}, {14: 0.9, 21: 0.9}),
        (7, 1, {7: 0.5, 10: 0.6, 14: 0.9}, {7: 0.5, 14: 0.9}),  # the first is kept for good
    ],
)
def test_the_best_epochs_are_kept_and_the_ousted_deleted(every, best, scores, left, tmp_path):
    kept = KeptModels(tmp_path, lambda folder: folder.mkdir(), every=every, best=best)
    ranked = {}
    for step, score in scores.items():
        ranked = kept.rank(step, score, ranked)
    assert ranked == {str(step): score for step, score in left.items() if score == 0.9}
    assert {path.name for path in tmp_path.iterdir()} == {f"step_{step}" for step in left}
    assert kept.due(28) == kept.due(14) == (every == 7) and not kept.due(20)
