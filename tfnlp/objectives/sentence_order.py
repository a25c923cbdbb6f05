"""Sentence order prediction: tell whether two consecutive texts were swapped.

Lan et al. 2020, 'ALBERT', section 3.1; trained together with masked spans.
"""

import dataclasses
from typing import ClassVar

from tfnlp.objectives.masked_lm import MaskedLM
from tfnlp.objectives.text_pairs import PairObjective


@dataclasses.dataclass(frozen=True)
class SentenceOrder(PairObjective):
    """Sentence order prediction: the texts are in order (label 0) or swapped (1).

    Each case has a probability of one half.

    Args:
        masked_lm: the `MaskedLM` for the tokens of both texts.
        short_share: the share of pairs that are cut from the corpus at a random length.
    """

    masked_lm: MaskedLM = dataclasses.field(default_factory=lambda: MaskedLM(hide="spans"))

    loss_name: ClassVar[str] = "sentence_order_loss"
    score_name: ClassVar[str] = "sentence_order_accuracy"

    def draw(self, passages, index, rng):
        document = int(passages.documents[index])
        start, middle, end = passages.halves(index, rng)
        texts = passages.text(document, start, middle), passages.text(document, middle, end)
        if rng.random() < 0.5:
            return *texts, 0
        return *texts[::-1], 1
