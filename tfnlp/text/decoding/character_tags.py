"""Character tags from the logits of tokens."""

import itertools

from tfnlp.text.reading.text_arguments import character_end


def token_characters(window, text):
    """Yield (position, first character, end character) of each token of a window.

    Leading white space of a token is excluded, although some tokenizers include it. Tokens of
    white space alone are skipped. A combining accent behind a token is included, although some
    tokenizers drop it.

    Args:
        window: from `Tokenizer.encode_text_windows`.
        text: the text of the window.
    """
    for place, (start, end) in enumerate(window.offsets):
        while start < end and text[start].isspace():
            start += 1
        if start < end:
            yield place, start, character_end(text, end)


def best_character_tags(texts, windows, logits, names):
    """Return the BIO tag of each character.

    The first character of a token gets the token's tag; the others are inside the same entity
    (Park et al. 2021, 'KLUE', section 3.4 and its code). A character without a token, such as
    white space, is inside an entity that continues after it, else outside. A token in two windows
    gets its tag from the window where it has more context on both sides.

    Args:
        texts: a list of strings.
        windows: from `Tokenizer.encode_text_windows`.
        logits: (L, tags) for each window.
        names: the tag names in order of their ids.

    Returns:
        For each text a list of tag names, one for each character.
    """
    tagged = best_characters(texts, windows, logits, names)
    return [[tag for tag, _ in characters] for characters in tagged]


def best_characters(texts, windows, logits, names):
    """Return the tag and logit of each character, by the rules of `best_character_tags`.

    A character without a token has the logit of the character before it, or 1 at the start.

    Returns:
        For each text a list of (name, logit), one for each character.
    """
    # For each text {first character: (margin, end character, tag, logit)}.
    tokens_of_texts = [{} for _ in texts]
    for window, rows in zip(windows, logits, strict=True):
        tokens = list(token_characters(window, texts[window.example]))
        best = tokens_of_texts[window.example]
        covered, kept = 0, None
        for k, (place, start, end) in enumerate(tokens):
            margin = min(k, len(tokens) - 1 - k)
            # Later tokens of the same character (jamo, bytes) do not decide its tag.
            # If they reach beyond it, as a piece after a separate "▁" does, the tag
            # extends to their end.
            if start < covered:
                if kept is not None and end > best[kept][1]:
                    best[kept] = best[kept][0], end, *best[kept][2:]
            elif margin > best.get(start, (-1,))[0]:
                row, kept = rows[place], start
                best[start] = margin, end, names[int(row.argmax())], float(row.max())
            else:
                kept = None  # another window decides
            covered = max(covered, end)
    return [_spread(len(text), best) for text, best in zip(texts, tokens_of_texts, strict=True)]


def _spread(length, tokens):
    """Return the (tag, logit) of `length` characters from {first: (margin, end, tag, logit)}."""
    tags, logits = [None] * length, [1.0] * length
    first_characters = sorted(tokens.items())
    following = [*(start for start, _ in first_characters[1:]), length]
    for (start, (_, end, tag, logit)), stop in zip(first_characters, following, strict=False):
        tags[start] = tag
        logits[start:stop] = [logit] * (stop - start)
        inside = tag if tag == "O" else f"I{tag[1:]}"
        tags[start + 1 : end] = [inside] * (end - start - 1)
    tagged = [i for i, tag in enumerate(tags) if tag is not None]
    for i, j in itertools.pairwise(tagged):
        if tags[j].startswith("I") and tags[j][1:] == tags[i][1:]:
            tags[i + 1 : j] = [tags[j]] * (j - i - 1)
    return [(tag or "O", logit) for tag, logit in zip(tags, logits, strict=True)]
