"""Settings of the training of sentence vectors, without Keras."""

import dataclasses

from tfnlp.utils.errors import InputError
from tfnlp.utils.settings import Settings, setting

# Losses of pairs with a number each.
SCORED = ("cosine", "cosent", "contrastive")
# Least and largest number of those that take no other scale.
RANGES = {"cosine": (-1, 1), "contrastive": (0, 1)}
# What they, and the others, are measured by; the first selects the best epoch.
SIMILARITY_SCORES = ("spearman", "pearson")
RETRIEVAL_SCORES = ("ndcg_10", "mrr_10", "recall_1", "recall_10")
# Names of the prompt of texts that are searched, in the order of sentence-transformers.
DOCUMENT_PROMPTS = ("document", "passage", "corpus")


@dataclasses.dataclass(frozen=True)
class VectorSettings(Settings):
    """Loss of `tfnlp.tasks.SentenceVectors`.

    Args:
        num_texts: the texts of an example: 2, or more with texts unlike the first.

    Raises:
        InputError: for a number of texts or settings that the loss does not take.
    """

    loss: str = setting(
        "ranking",
        "ranking: each text finds its own second one among those of the batch, and no third; "
        "triplet: it is nearer to the second than to the third; cosine, cosent, contrastive: "
        "pairs with a score from -1 to 1, of any scale, and of 0 or 1.",
        choices=("ranking", "triplet", *SCORED),
    )
    scale: float = setting(20.0, "Factor of cosines in ranking and cosent.", low=0.01)
    symmetric: bool = setting(False, "In ranking, let second texts find the first ones too.")
    matryoshka_dims: tuple[int, ...] = setting(
        (),
        "Widths at which the first entries of a vector are to be vectors too, such as 64,128; the "
        "whole one is learned beside them.",
    )
    num_texts: int = 2

    def __post_init__(self):
        super().__post_init__()
        right = {"ranking": self.num_texts >= 2, "triplet": self.num_texts == 3}
        if not right.get(self.loss, self.num_texts == 2):
            raise InputError(
                f"loss={self.loss} does not take {self.num_texts} text_columns; ranking takes 2 "
                "or more, triplet 3, the others 2."
            )
        if self.symmetric and self.loss != "ranking":
            raise InputError(f"symmetric has no effect with loss={self.loss}; leave it out.")
        if self.scale != type(self).scale and self.loss not in ("ranking", "cosent"):
            raise InputError(f"scale has no effect with loss={self.loss}; leave it out.")
        if any(dim < 1 for dim in self.matryoshka_dims):
            raise InputError(f"matryoshka_dims={self.matryoshka_dims} must be at least 1 each.")
