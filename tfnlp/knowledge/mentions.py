"""Mentions of a graph's entities in a text."""

# morphy(7WN): endings of nouns, of verbs and of adjectives, and what replaces them.
ENDINGS = (
    *(("s", ""), ("ses", "s"), ("ves", "f"), ("xes", "x"), ("zes", "z"), ("ches", "ch")),
    *(("shes", "sh"), ("men", "man"), ("ies", "y")),
    *(("es", "e"), ("es", ""), ("ed", "e"), ("ed", ""), ("ing", "e"), ("ing", "")),
    *(("er", ""), ("est", ""), ("er", "e"), ("est", "e")),
)


def find_mentions(words, graph, stop_words=None):
    """Return a list of (start, stop, entity): words[start:stop] is the lemma of an entity.

    From left to right the longest lemma is taken, as it is written or in its base form by
    WordNet's rules of detachment; the entity is the lemma's most frequent sense.

    Args:
        words: a list of strings, of any case.
        graph: a `KnowledgeGraph`.
        stop_words: words that are no mention by themselves; scikit-learn's English ones if None.
    """
    if stop_words is None:
        # Every fine-tuning reads this file, and takes a second to load scikit-learn.
        from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS as stop_words
    words = [word.lower() for word in words]
    mentions, start = [], 0
    while start < len(words):
        for stop in range(min(start + graph.longest_lemma, len(words)), start, -1):
            lemma = find_lemma(" ".join(words[start:stop]), graph.lemmas)
            if lemma and not stop_words.issuperset(words[start:stop]):
                mentions.append((start, stop, graph.lemmas[lemma][0]))
                start = stop - 1
                break
        start += 1
    return mentions


def find_lemma(form, lemmas):
    """Return a form if it is in `lemmas`, or its first base form that is; else None."""
    if form in lemmas:
        return form
    bases = (form.removesuffix(ending) + base for ending, base in ENDINGS if form.endswith(ending))
    return next((base for base in bases if base in lemmas), None)
