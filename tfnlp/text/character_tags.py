"""Tags of characters from the logits of the tokens that they are in."""

import itertools

from tfnlp.text.texts import character_end


def token_characters(window, text):
    """Yields (place, first character, the one after its last) of a window's tokens.

    White space before a token is not of it, though some tokenizers say so; tokens of nothing
    else are left out. An accent behind a token is of it, though some tokenizers drop it.

    Args:
        window: from `Tokenizer.encode_text_windows`.
        text: that it is of.
    """
    for place, (start, end) in enumerate(window.offsets):
        while start < end and text[start].isspace():
            start += 1
        if start < end:
            yield place, start, character_end(text, end)


def best_character_tags(texts, windows, logits, names):
    """The tag of each character, of BIO.

    A token's tag is that of its first character, the others are inside the same entity (Park et
    al. 2021, 'KLUE', section 3.4 and its code). What has no token, such as white space, is
    inside an entity that goes on after it, else outside. A token in two windows gets the tag of
    the one where it has more tokens around it.

    Args:
        texts: a list of strings.
        windows: from `Tokenizer.encode_text_windows`.
        logits: for each window (L, tags).
        names: of the tags, in order of their ids.

    Returns:
        For each text a list of as many names.
    """
    found = best_characters(texts, windows, logits, names)
    return [[tag for tag, _ in characters] for characters in found]


def best_characters(texts, windows, logits, names):
    """The tag of each character, as `best_character_tags`, and its logit.

    A character without a token has the logit of the one before, 1 at the beginning.

    Returns:
        For each text a list of as many (name, logit).
    """
    # For each text {first character: (margin, the one after the last, tag, logit)}.
    found = [{} for _ in texts]
    for window, rows in zip(windows, logits, strict=True):
        tokens = list(token_characters(window, texts[window.example]))
        best = found[window.example]
        covered, kept = 0, None
        for k, (place, start, end) in enumerate(tokens):
            margin = min(k, len(tokens) - 1 - k)
            # The later tokens of one character (jamo, bytes) have no say in its tag; where they
            # reach beyond it, as a piece after a "▁" of its own does, so does the tag.
            if start < covered:
                if kept is not None and end > best[kept][1]:
                    best[kept] = best[kept][0], end, *best[kept][2:]
            elif margin > best.get(start, (-1,))[0]:
                row, kept = rows[place], start
                best[start] = margin, end, names[int(row.argmax())], float(row.max())
            else:
                kept = None  # another window has the say
            covered = max(covered, end)
    return [_spread(len(text), best) for text, best in zip(texts, found, strict=True)]


def _spread(length, tokens):
    """The tag and logit of so many characters; `tokens` are {first: (margin, end, tag, logit)}."""
    tags, logits = [None] * length, [1.0] * length
    found = sorted(tokens.items())
    following = [*(start for start, _ in found[1:]), length]
    for (start, (_, end, tag, logit)), stop in zip(found, following, strict=False):
        tags[start] = tag
        logits[start:stop] = [logit] * (stop - start)
        inside = tag if tag == "O" else f"I{tag[1:]}"
        tags[start + 1 : end] = [inside] * (end - start - 1)
    known = [i for i, tag in enumerate(tags) if tag is not None]
    for i, j in itertools.pairwise(known):
        if tags[j].startswith("I") and tags[j][1:] == tags[i][1:]:
            tags[i + 1 : j] = [tags[j]] * (j - i - 1)
    return [(tag or "O", logit) for tag, logit in zip(tags, logits, strict=True)]
