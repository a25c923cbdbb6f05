"""Models that a run keeps beside its best one: of every N steps, and of its best epochs."""

import dataclasses
import pathlib
import shutil
from collections.abc import Callable


@dataclasses.dataclass
class KeptModels:
    """Folders `step_2000` of the models after so many steps.

    Args:
        folder: the folder of all.
        save: function that writes the model of now to a folder.
        every: N, the steps between models that are kept for good; None for none.
        best: k, the number of best epochs whose models are kept.
    """

    folder: pathlib.Path
    save: Callable
    every: int | None = None
    best: int = 0

    def due(self, step):
        """Return whether the model after so many steps is kept for good."""
        return bool(self.every) and step % self.every == 0

    def keep(self, step):
        self.save(self.folder / f"step_{step}")

    def rank(self, step, score, earlier):
        """Keep the model of an epoch if it is one of the k best, and delete the one that it ousts.

        Args:
            step: the steps until the end of the epoch.
            score: its score, the highest the best; of equal ones the earlier is the better.
            earlier: {steps as text: score} of the best epochs so far.

        Returns:
            The same with this epoch, of k at most.
        """
        scores = {**earlier, str(step): score}
        ranked = sorted(scores, key=lambda name: (-scores[name], int(name)))
        kept = ranked[: self.best]
        if str(step) in kept:
            self.keep(step)
        for name in ranked[self.best :]:
            if not self.due(int(name)):
                shutil.rmtree(self.folder / f"step_{name}", ignore_errors=True)
        return {name: scores[name] for name in kept}
