"""Training that word2vec and GloVe share: part by part, with a state to resume from."""

import time

import numpy as np

from tfnlp.utils.errors import InputError
from tfnlp.utils.progress import progress_bar

# Words or pairs between two looks at the clock, and the seconds between two states.
PART = 100_000
SAVE_SECONDS = 600


class WordVectorModel:
    """Word vectors in training.

    What a child draws depends on its seed, the epoch and the place in it alone, so that a killed
    training that resumes ends with the very same vectors.

    Attributes:
        settings: the settings; they have `epochs`.
        size: the number of words or pairs of an epoch.
        unit: "word" or "pair".
        variables: {name: variable}, all that the training changes.
    """

    def train(self, run=None, fingerprints=None):
        """Train for all epochs; return the `WordVectors`.

        Args:
            run: a `tfnlp.training.RunFolder`, held by `alone`, to resume from and to save a state
                to after each epoch and every ten minutes; without it nothing is saved.
            fingerprints: {name: fingerprint} of the inputs, as `RunFolder.save_state` takes them.

        Raises:
            InputError: if the vectors become NaN or infinite, or the folder's state is of other
                inputs.
        """
        state = run and run.load_state(self.variables, fingerprints)
        place, total = state[0]["place"] if state else 0, self.settings.epochs * self.size
        if run:
            run.start()
        saved = time.monotonic()
        with progress_bar(total=total, initial=place, unit=self.unit, unit_scale=True) as bar:
            while place < total:
                epoch, start = divmod(place, self.size)
                count = min(PART, self.size - start)
                self.train_part(epoch, slice(start, start + count))
                place += count
                bar.update(count)
                if place % self.size and time.monotonic() - saved < SAVE_SECONDS:
                    continue
                self._check_finite(place // self.size)
                if run:
                    progress = {"epoch": place // self.size, "place": place, "stopped": False}
                    run.save_state(self.variables, {}, progress, fingerprints)
                    saved = time.monotonic()
        return self.word_vectors()

    def _check_finite(self, epochs):
        if not all(np.isfinite(values.numpy()).all() for values in self.variables.values()):
            raise InputError(
                f"The vectors are not finite after {epochs} epochs; give a lower "
                f"learning_rate={self.settings.learning_rate}."
            )
