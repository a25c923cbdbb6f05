"""Special-token templates of tokenizers, for texts that are ids already."""

import dataclasses

import numpy as np

from tfnlp.utils.errors import InputError


@dataclasses.dataclass(frozen=True, eq=False)
class SpecialTokenTemplate:
    """The special-token template of a tokenizer, for texts that are ids already.

    Args:
        single: two lists of (id, segment): before and after a text.
        single_segment: the segment of the tokens of a single text.
        pair: three lists of (id, segment): before, between and after two texts.
        pair_segments: the segments of the tokens of both texts.
    """

    single: tuple
    single_segment: int
    pair: tuple
    pair_segments: tuple

    @classmethod
    def from_tokenizer(cls, tokenizer):
        """Infer the template of a tokenizer of `tfnlp.text`.

        Raises:
            InputError: if the tokenizer has no ordinary token, so that its template cannot be
                inferred.
        """
        special, unknown = set(tokenizer.special_token_ids), tokenizer.unknown_token_id
        for word in ("a", "e", "o", "1", ".", "이", "다", "b", "c", "d"):
            ids = tokenizer.encode([word])[0].token_ids
            # In a partly known word such as "▁<unk>", the unknown token would be taken
            # for a special one.
            if unknown not in ids and any(i not in special for i in ids):
                break
        else:
            raise InputError(
                "The tokenizer has neither a letter nor a digit, so its special tokens cannot be "
                "inferred; give one that was trained on text."
            )
        single, pair = tokenizer.encode([word])[0], tokenizer.encode([word], [word])[0]
        (before, segment, after) = _split(single, special, 1)
        (first, first_segment, between, second_segment, last) = _split(pair, special, 2)
        return cls(
            (before, after), segment, (first, between, last), (first_segment, second_segment)
        )

    @property
    def single_size(self):
        """The number of special tokens around one text."""
        return sum(map(len, self.single))

    @property
    def pair_size(self):
        """The number of special tokens around two texts."""
        return sum(map(len, self.pair))

    def around(self, ids, pair_ids=None):
        """Add the special tokens to one text or two.

        Args:
            ids: (n,) int32.
            pair_ids: (m,) int32, the second text; or None.

        Returns:
            The token ids and the segment ids, int32.
        """
        if pair_ids is None:
            parts, texts, segments = self.single, (ids,), (self.single_segment,)
        else:
            parts, texts, segments = self.pair, (ids, pair_ids), self.pair_segments
        token_ids, segment_ids = [], []
        for number, part in enumerate(parts):
            token_ids.append([token for token, _ in part])
            segment_ids.append([segment for _, segment in part])
            if number < len(texts):
                token_ids.append(texts[number])
                segment_ids.append(np.full(len(texts[number]), segments[number]))
        return tuple(np.concatenate(x).astype("int32") for x in (token_ids, segment_ids))


def _split(encoding, special, texts):
    """Split an encoding into groups of special tokens and, between them, each text's segment."""
    parts, inside = [[]], False
    for token, segment in zip(encoding.token_ids, encoding.segment_ids, strict=True):
        if token in special:
            if inside:
                parts.append([])
            inside = False
            parts[-1].append((int(token), int(segment)))
        elif not inside or segment != parts[-1]:
            if inside:  # no special token between two texts, as in GPT
                parts.append([])
            inside = True
            parts.append(int(segment))
    if inside:
        parts.append([])
    if len(parts) != 2 * texts + 1:
        raise InputError(
            f"The tokenizer encodes {texts} texts as {encoding.token_ids}, where no special token "
            "separates them; give another tokenizer."
        )
    return [tuple(part) if isinstance(part, list) else part for part in parts]
