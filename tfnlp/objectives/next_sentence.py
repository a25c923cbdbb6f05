"""Next sentence prediction: tell following texts from those of other documents.

Devlin et al. 2019, 'BERT', section 3.1, task 2, and appendix A.2; trained together with masked LM.
"""

import dataclasses
from typing import ClassVar

import numpy as np

from tfnlp.objectives.text_pairs import PairObjective
from tfnlp.utils.errors import InputError


@dataclasses.dataclass(frozen=True)
class NextSentence(PairObjective):
    """Next sentence prediction: the second text follows the first (label 0) or is random (1).

    Each case has a probability of one half. A random text is from another document, from a random
    place that leaves enough text to match the true continuation, and of a similar length. So
    lengths do not reveal the label. If no other document has enough text, it is shorter.

    Args:
        masked_lm: the `MaskedLM` for the tokens of both texts.
        short_share: the share of pairs that are cut from the corpus at a random length.
    """

    loss_name: ClassVar[str] = "next_sentence_loss"
    score_name: ClassVar[str] = "next_sentence_accuracy"

    def check_documents(self, passages):
        if np.count_nonzero(np.diff(passages.document_starts)) < 2:
            raise InputError(
                "The corpus is one document, so that there is no text of another one to tell "
                "from the next; keep the borders of documents, or learn the order of sentences."
            )

    def draw(self, passages, index, rng):
        document = int(passages.documents[index])
        start, middle, end = passages.halves(index, rng)
        first = passages.text(document, start, middle)
        if rng.random() < 0.5:
            return first, passages.text(document, middle, end), 0
        size = int(passages.ends[end] - passages.ends[middle])
        return first, passages.text(*passages.other_text(document, size, rng)), 1
