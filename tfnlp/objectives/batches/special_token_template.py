"""Special-token templates of tokenizers, for texts that are ids already."""

import dataclasses

import numpy as np

from tfnlp.utils.errors import InputError


@dataclasses.dataclass(frozen=True, eq=False)
class SpecialTokenTemplate:
    """The special-token template of a tokenizer, for texts that are ids already.

    Args:
        single: two tuples of (id, segment): before and after a text.
        single_segment: the segment of the tokens of a single text.
        pair: three tuples of (id, segment): before, between and after two texts.
        pair_segments: the segments of the tokens of both texts.
    """

    single: tuple
    single_segment: int
    pair: tuple
    pair_segments: tuple

    @classmethod
    def from_tokenizer(cls, tokenizer):
        """Infer the template of a tokenizer of `tfnlp.text` from a word alone and in a pair.

        Raises:
            InputError: if the tokenizer has no ordinary token, so that its template cannot be
                inferred.
        """
        special = list(tokenizer.special_token_ids)
        for word in ("a", "e", "o", "1", ".", "이", "다", "b", "c", "d"):
            single, pair = tokenizer.encode([word])[0], tokenizer.encode([word], [word])[0]
            places = np.flatnonzero(~np.isin(pair.token_ids, special))
            # In a partly known word such as "▁<unk>", the unknown token would be taken
            # for a special one.
            if len(places) and tokenizer.unknown_token_id not in single.token_ids:
                break
        else:
            raise InputError(
                "The tokenizer has neither a letter nor a digit, so its special tokens cannot be "
                "inferred; give one that was trained on text."
            )
        first, second = np.split(places, 2)

        def around(encoding, *texts):
            """Return the special tokens before, between and after texts at these places."""
            columns = (map(int, x) for x in (encoding.token_ids, encoding.segment_ids))
            tokens = list(zip(*columns, strict=True))
            starts = [0, *(text[-1] + 1 for text in texts)]
            ends = [*(text[0] for text in texts), len(tokens)]
            return tuple(tuple(tokens[a:b]) for a, b in zip(starts, ends, strict=True))

        alone = np.flatnonzero(~np.isin(single.token_ids, special))
        segments = tuple(int(pair.segment_ids[text[0]]) for text in (first, second))
        segment = int(single.segment_ids[alone[0]])
        return cls(around(single, alone), segment, around(pair, first, second), segments)

    @property
    def single_size(self):
        """The number of special tokens around one text."""
        return sum(map(len, self.single))

    @property
    def pair_size(self):
        """The number of special tokens around two texts."""
        return sum(map(len, self.pair))

    def room(self, max_length, texts, taken=0):
        """Return the number of tokens of 1 or 2 texts for which `max_length` ids have room.

        Raises:
            InputError: if there is none for a token of each text beside the special tokens and
                `taken` others.
        """
        size = taken + (self.single_size if texts == 1 else self.pair_size)
        if max_length < size + texts:
            raise InputError(
                f"max_length={max_length} leaves no room for text beside {size} other tokens; "
                f"give at least {size + texts}."
            )
        return max_length - size

    def around(self, ids, pair_ids=None):
        """Return the token ids and segment ids, int32, of one text (n,) or two (n,) and (m,)."""
        if pair_ids is None:
            (before, *after), texts, segments = self.single, (ids,), (self.single_segment,)
        else:
            (before, *after), texts, segments = self.pair, (ids, pair_ids), self.pair_segments
        token_ids, segment_ids = ([part[i] for part in before] for i in (0, 1))
        token_ids, segment_ids = [token_ids], [segment_ids]
        for text, segment, special in zip(texts, segments, after, strict=True):
            token_ids += [text, [token for token, _ in special]]
            segment_ids += [np.full(len(text), segment), [s for _, s in special]]
        return tuple(np.concatenate(x).astype("int32") for x in (token_ids, segment_ids))
