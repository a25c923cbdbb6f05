"""Word segmentation that reproduces the tokenisation of a tagger's training data."""

import collections
import dataclasses
import re

_CHUNK = re.compile(r"\S+")
# English clitics: 's, 're, n't.
_CLITIC = re.compile(r"['’]\w{1,3}|n['’]t")
_LONGEST = 8  # the maximum length of a prefix or suffix


@dataclasses.dataclass(frozen=True)
class WordSplitter:
    """Splitter of texts at white space, and of prefixes and suffixes from words.

    Args:
        prefixes: prefixes that are split off as separate words, such as "(".
        suffixes: suffixes that are split off as separate words, such as "." and "'s".
        whole: words that are never split, such as "U.S.".
    """

    prefixes: frozenset = frozenset()
    suffixes: frozenset = frozenset()
    whole: frozenset = frozenset()

    @classmethod
    def from_sentences(cls, sentences):
        """Learn the segmentation from sentences that are split into words.

        Punctuation and English clitics become prefixes or suffixes if they are more often a
        separate word than the start or end of a longer one.

        Args:
            sentences: lists of words.
        """
        counts = collections.Counter(word for words in sentences for word in words)
        affixes = {w for w in counts if not _has_letters(w) or _CLITIC.fullmatch(w)}
        begins, ends = collections.Counter(), collections.Counter()
        for word, count in counts.items():
            if word not in affixes:
                for n in range(1, min(len(word), _LONGEST + 1)):
                    begins[word[:n]] += count
                    ends[word[-n:]] += count
        split = cls(
            frozenset(w for w in affixes if not _has_letters(w) and counts[w] > begins[w]),
            frozenset(w for w in affixes if counts[w] > ends[w]),
        )
        parted = {word: split._parts(word) for word in counts}
        parted = {word: tuple(parts) for word, parts in parted.items() if len(parts) > 1}
        # Words that the data keeps whole at least as often as it splits them.
        wanted, apart = set(parted.values()), collections.Counter()
        sizes = {len(parts) for parts in wanted}
        for words in sentences:
            for size in sizes:
                runs = (tuple(words[i : i + size]) for i in range(len(words) - size + 1))
                apart.update(run for run in runs if run in wanted)
        whole = frozenset(w for w, parts in parted.items() if counts[w] >= apart[parts])
        return dataclasses.replace(split, whole=whole)

    @classmethod
    def from_settings(cls, settings):
        """Build a splitter from the result of `settings`; None splits at white space alone."""
        return cls(**{name: frozenset(words) for name, words in (settings or {}).items()})

    def settings(self):
        """Return the fields as a dict of sorted lists, for JSON."""
        return {name: sorted(words) for name, words in vars(self).items()}

    def spans(self, text):
        """Return (first character, end character) of each word of a text."""
        spans = []
        for chunk in _CHUNK.finditer(text):
            start = chunk.start()
            for part in self._parts(chunk.group()):
                spans.append((start, start + len(part)))
                start += len(part)
        return spans

    def _parts(self, word):
        before, after = [], []
        while word not in self.whole:
            sizes = range(min(len(word) - 1, _LONGEST), 0, -1)
            first = next((n for n in sizes if word[:n] in self.prefixes), 0)
            last = 0 if first else next((n for n in sizes if word[-n:] in self.suffixes), 0)
            if not first + last:
                break
            if first:
                before.append(word[:first])
                word = word[first:]
            else:
                after.append(word[-last:])
                word = word[:-last]
        return [*before, word, *reversed(after)]


def _has_letters(word):
    return any(c.isalnum() for c in word)
