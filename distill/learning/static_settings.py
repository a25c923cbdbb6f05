"""Settings of static vectors, without Keras."""

import dataclasses

from tfnlp.utils.errors import InputError
from tfnlp.utils.settings import Settings, setting


@dataclasses.dataclass(frozen=True)
class StaticSettings(Settings):
    """Settings of static vectors, described by the help of their fields."""

    dims: int = setting(256, "Dimensions of the vectors, by PCA.", low=1)
    weights: str = setting(
        "zipf",
        "Weight a / (a + p) of a token: by its share p of `text` (sif), or by its rank in the "
        "vocabulary, which begins with the commonest tokens (zipf); or 1 (none).",
        choices=("zipf", "sif", "none"),
    )
    sif_coefficient: float = setting(1e-4, "The a of the weights.", above=0, below=1)

    def check_texts(self, texts):
        """Raise an InputError for weights by counts without texts to count in."""
        if self.weights == "sif" and not texts:
            raise InputError("weights=sif counts tokens in texts; give `text`.")
