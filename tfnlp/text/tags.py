"""Tags of words from the logits of their first tokens."""


def first_tokens(window):
    """Yields (word, place of its first token) of a window of `Tokenizer.encode_words`.

    A word that begins in an earlier window is left to that one.
    """
    before = None
    for place, word in enumerate(window.words):
        if word is not None and word != before and window.offsets[place][0] == 0:
            yield word, place
        before = word


def best_tags(sentences, windows, logits, names):
    """The tag of each word.

    A word in two windows gets the tag of the one where it has more words around it.

    Args:
        sentences: lists of words.
        windows: from `Tokenizer.encode_words`.
        logits: for each window (L, tags).
        names: of the tags, in order of their ids; the first where a word has no token.

    Returns:
        A list of lists of names.
    """
    tags = [[names[0]] * len(words) for words in sentences]
    margins = [[-1] * len(words) for words in sentences]
    for window, rows in zip(windows, logits, strict=True):
        places = list(first_tokens(window))
        for k, (word, place) in enumerate(places):
            margin = min(k, len(places) - 1 - k)
            if margin > margins[window.example][word]:
                margins[window.example][word] = margin
                tags[window.example][word] = names[int(rows[place].argmax())]
    return tags
