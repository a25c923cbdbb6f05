"""Where the words of a text stand, split as those were that a tagger learned from."""

import collections
import dataclasses
import re

_CHUNK = re.compile(r"\S+")
# What English parts from the word before it: 's, 're, n't.
_CLITIC = re.compile(r"['’]\w{1,3}|n['’]t")
_LONGEST = 8  # characters of a prefix or suffix


@dataclasses.dataclass(frozen=True)
class WordSplitter:
    """Splits texts at white space, and what is named here from the words that it stands at.

    Args:
        prefixes: words of their own before another word, such as "(".
        suffixes: words of their own behind another word, such as "." and "'s".
        whole: words that stay whole all the same, such as "U.S.".
    """

    prefixes: frozenset = frozenset()
    suffixes: frozenset = frozenset()
    whole: frozenset = frozenset()

    @classmethod
    def of(cls, sentences):
        """Learns how words were split.

        Punctuation, and English clitics, are parted from words where they are more often a
        word of their own than the beginning or end of one.

        Args:
            sentences: lists of words.
        """
        counts = collections.Counter(word for words in sentences for word in words)
        own = {w for w in counts if not _has_letters(w) or _CLITIC.fullmatch(w)}
        begins, ends = collections.Counter(), collections.Counter()
        for word, count in counts.items():
            if word not in own:
                for n in range(1, min(len(word), _LONGEST + 1)):
                    begins[word[:n]] += count
                    ends[word[-n:]] += count
        split = cls(
            frozenset(w for w in own if not _has_letters(w) and counts[w] > begins[w]),
            frozenset(w for w in own if counts[w] > ends[w]),
        )
        parted = {word: split._parts(word) for word in counts}
        parted = {word: tuple(parts) for word, parts in parted.items() if len(parts) > 1}
        # Words that the data has whole, and more often so than in parts.
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
        """From what `settings` gave; of None that which splits at white space alone."""
        return cls(**{name: frozenset(words) for name, words in (settings or {}).items()})

    def settings(self):
        """A dict of sorted lists, for JSON."""
        return {name: sorted(words) for name, words in vars(self).items()}

    def spans(self, text):
        """The first character of each word of a text, and the one after its last."""
        found = []
        for chunk in _CHUNK.finditer(text):
            start = chunk.start()
            for part in self._parts(chunk.group()):
                found.append((start, start + len(part)))
                start += len(part)
        return found

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
