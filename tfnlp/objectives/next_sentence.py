"""Next sentence prediction: whether a text follows another, or is from another document.

Devlin et al. 2019, 'BERT', section 3.1, task 2, and appendix A.2; masked tokens are learned with
it.
"""

import dataclasses
from typing import ClassVar

import numpy as np

from tfnlp.errors import InputError
from tfnlp.objectives.text_pairs import PairObjective


@dataclasses.dataclass(frozen=True)
class NextSentence(PairObjective):
    """Half of the second texts follow the first (label 0), half are of other documents (1).

    Another document is drawn, and where the text begins in it: only where as much text comes after
    as the text has that it stands for, and near to its length, so that lengths do not tell which
    is which. Where no other document has as much, it is shorter.

    Args:
        masked_lm: a `MaskedLM`, of the tokens of both texts.
        short_share: of pairs that are cut from the corpus at a random length.
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
