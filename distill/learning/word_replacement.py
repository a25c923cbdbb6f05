"""Augmentation of texts by word replacement, with candidates of a masked language model.

Jiao et al. 2020 (TinyBERT), section 4 and algorithm 1; Wu et al. 2019 for the replacement by a
masked language model.
"""

import re

import numpy as np
import tensorflow as tf

from distill.learning.augmentation_settings import ReplacementConfig
from distill.learning.word_neighbours import pieces_within, whole_words
from tfnlp.models import MASKED_LMS, check_vocabulary
from tfnlp.objectives import predict_at_positions
from tfnlp.objectives.batches.masking import POSITIONS
from tfnlp.text import Encoding, LengthBatches
from tfnlp.training.run.inference import input_signature
from tfnlp.utils.errors import InputError

# Words that may be replaced consist of letters; numbers stay.
_WORD = re.compile(r"\w+")
# Score that excludes a token from the candidates.
_NEVER = -1e9


class WordReplacer:
    """Augmentation of texts by word replacement (Jiao et al. 2020, algorithm 1).

    A word that is a single token is masked. Its candidates are the K whole words that the masked
    language model finds most probable there. A word of several tokens has as candidates its K
    nearest neighbours among word vectors. In each copy each word is replaced with probability p_t,
    by a uniform draw from its candidates. Candidates come from the original text, as in the
    paper's released code, so a text takes one pass for each word, not for each copy. A word is not
    its own candidate.

    Args:
        model: with the head "masked_lm".
        tokenizer: its tokenizer, which has a token [MASK] or <mask>.
        vectors: `WordNeighbours` for words of several tokens; None to leave them unchanged.
        config: a `ReplacementConfig`.
        batch_size: masked texts in a batch.

    Raises:
        InputError: if the model has another head, or the tokenizer has no mask token.
    """

    def __init__(self, model, tokenizer, vectors=None, config=None, batch_size=64):
        check_vocabulary(tokenizer, model)
        if model.head not in MASKED_LMS:
            raise InputError(f"The model has the head {model.head!r}; give a masked LM.")
        if tokenizer.mask_token_id is None:
            raise InputError("The tokenizer has no [MASK] or <mask>; give one that has.")
        self.model, self.tokenizer = model, tokenizer
        self.vectors = vectors
        self.config = config or ReplacementConfig()
        self.batch_size = batch_size
        self.words = whole_words(tokenizer)
        # The word itself may be among the most probable ones.
        count = min(self.config.candidates + 1, len(self.words))
        self._best_tokens = _best_tokens(model, list(self.words), count)

    def __call__(self, texts, first=0):
        """Return the copies of some texts.

        Args:
            texts: a list of strings.
            first: the number of the first in the whole file, on which the draws depend.

        Returns:
            A list of lists of `copies` texts.
        """
        pairs = zip(texts, self.candidates(texts), strict=True)
        return [self._copies(*pair, number) for number, pair in enumerate(pairs, first)]

    def candidates(self, texts):
        """Return the candidate replacements of the words of texts.

        Returns:
            For each text a dict {(start, end): list of words}, without words that have none.
        """
        encodings = self.tokenizer.encode(
            texts, max_length=self.model.text_config.max_length, offsets=True
        )
        candidates, masked = [{} for _ in texts], []
        for number, (text, encoding) in enumerate(zip(texts, encodings, strict=True)):
            for start, end in word_places(text):
                pieces = pieces_within(encoding, start, end)
                if len(pieces) == 1:
                    masked.append((number, (start, end), encoding, pieces[0]))
                elif pieces and self.vectors is not None:
                    candidates[number][start, end] = self.vectors.nearest(
                        text[start:end], self.config.candidates
                    )
        for (number, place, *_), ids in zip(masked, self._predict(masked), strict=True):
            word = texts[number][slice(*place)]
            others = [self.words[i] for i in ids if self.words[i].lower() != word.lower()]
            candidates[number][place] = others[: self.config.candidates]
        return [
            {place: words for place, words in sorted(by_place.items()) if words}
            for by_place in candidates
        ]

    def _predict(self, masked):
        """Return the ids of the most probable words at each masked place, the best first."""
        encodings = []
        for _, _, encoding, place in masked:
            ids = list(encoding.token_ids)
            ids[place] = self.tokenizer.mask_token_id
            encodings.append(Encoding(ids, list(encoding.segment_ids), truncated=False))
        if not masked:
            return []
        places = np.array([[place] for *_, place in masked], "int32")
        pad = self.tokenizer.pad_token_id
        batches = LengthBatches(encodings, self.batch_size, pad_token_id=pad)
        best = [None] * len(masked)
        for indices in batches.batch_indices():
            inputs = batches.batch(indices)[0] | {POSITIONS: places[indices]}
            for i, ids in zip(indices, self._best_tokens(inputs), strict=True):
                best[i] = ids.tolist()
        return best

    def _copies(self, text, candidates, number):
        rng = np.random.default_rng([self.config.seed, number])
        shape = (self.config.copies, len(candidates))
        replaced = rng.random(shape) <= self.config.probability
        draws = rng.random(shape)
        copies = []
        for copy in range(self.config.copies):
            parts, end = [], 0
            for i, ((start, stop), words) in enumerate(candidates.items()):
                parts.append(text[end:start])
                word, end = text[start:stop], stop
                if replaced[copy, i]:
                    # Sorted, since rounding orders words of similar probability, and depends on
                    # the batch size.
                    word = _cased(sorted(words)[int(draws[copy, i] * len(words))], word)
                parts.append(word)
            copies.append("".join(parts) + text[end:])
        return copies


def word_places(text):
    """Return the (start, end) character offsets of each word of letters."""
    return [match.span() for match in _WORD.finditer(text) if match.group().isalpha()]


def _cased(word, like):
    """Return a word with the capitalisation of another."""
    if len(like) > 1 and like.isupper():
        return word.upper()
    return word[:1].upper() + word[1:] if like[:1].isupper() else word


def _best_tokens(model, ids, count):
    """Build a function from inputs with `POSITIONS` (B, 1) to the `count` best of some ids."""
    # Apply the head at masked positions only: over all tokens it takes most of the time.
    model = predict_at_positions(model)
    scores = np.full(model.output["logits"].shape[-1], _NEVER, "float32")
    scores[ids] = 0

    @tf.function(input_signature=[input_signature(model)])
    def best(inputs):
        logits = tf.cast(model(inputs, training=False)["logits"], "float32")[:, 0]
        return tf.math.top_k(logits + scores, count).indices

    return lambda inputs: best(inputs).numpy()
