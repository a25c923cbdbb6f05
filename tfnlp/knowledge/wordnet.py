"""WordNet's database files as a graph (Fellbaum 1998)."""

import collections
import contextlib
import gc
import io
import pathlib
import warnings

import numpy as np

from tfnlp.knowledge.graph import KnowledgeGraph
from tfnlp.text.reading.lines import read_lines
from tfnlp.utils.errors import InputError, needs_packages

PARTS = {"noun": "n", "verb": "v", "adj": "a", "adv": "r"}
FILES = [f"{kind}.{part}" for kind in ("data", "index") for part in PARTS]
FILES += [f"{part}.exc" for part in PARTS]

# Relations of synsets, and those of single words of theirs; nltk's methods have an s more.
SYNSET_RELATIONS = (
    *("hypernym", "instance_hypernym", "hyponym", "instance_hyponym"),
    *("member_holonym", "substance_holonym", "part_holonym"),
    *("member_meronym", "substance_meronym", "part_meronym"),
    *("topic_domain", "in_topic_domain", "region_domain", "in_region_domain"),
    *("usage_domain", "in_usage_domain", "attribute", "entailment", "cause"),
    *("also_see", "verb_group", "similar_to"),
)
LEMMA_RELATIONS = ("antonym", "derivationally_related_form", "pertainym")


@contextlib.contextmanager
def _garbage_kept():
    """Pause the collector of garbage, which would search a million new objects over and over."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@_garbage_kept()
def read_wordnet(folder):
    """Read WordNet's database files.

    The entities are synsets, named as nltk names them (`dog.n.01`). A relation of two words is one
    of their synsets. The senses of a word are in the order of the index files, most frequent
    first; the part of speech with the most senses in tagged text comes first. Irregular forms
    of a word ('mice') are lemmas as well, after the senses of their own.

    Args:
        folder: the folder of data.noun, index.noun, noun.exc and so on, of WordNet 3.0.

    Raises:
        InputError: if a file is missing or broken, or nltk is not installed.
    """
    folder = pathlib.Path(folder)
    for name in FILES:
        if not (folder / name).is_file():
            raise InputError(
                f"{folder} has no {name}; install WordNet 3.0 (apt-get install wordnet-base, then "
                "/usr/share/wordnet; or python -m nltk.downloader wordnet, and unzip it)."
            )
    synsets = _read_synsets(folder)
    entities = [synset.name() for synset in synsets]
    ids = {name: i for i, name in enumerate(entities)}
    relations = [*SYNSET_RELATIONS, *LEMMA_RELATIONS]
    triples = [
        (ids[synset.name()], relations.index(name), ids[other.name()])
        for synset in synsets
        for name, other in _related(synset)
    ]
    places = {
        (synset.pos().replace("s", "a"), synset.offset()): i for i, synset in enumerate(synsets)
    }
    senses = _read_senses(folder, places)
    _add_exceptions(folder, senses)
    lemmas = {lemma: _by_frequency(parts.values()) for lemma, parts in senses.items()}
    return KnowledgeGraph(entities, relations, np.unique(triples, axis=0).astype("int32"), lemmas)


def _read_synsets(folder):
    with needs_packages("WordNet", "nltk"):
        import nltk
        from nltk.corpus.reader.wordnet import WordNetCorpusReader, WordNetError

    class Reader(WordNetCorpusReader):
        """Reader that needs neither `lexnames` nor nltk's own WordNet."""

        def open(self, file):
            if file == "lexnames":  # the names of the lexicographers' files, unused here
                return io.StringIO("".join(f"{i:02d} {i:02d} 0\n" for i in range(45)))
            return io.StringIO((folder / file).read_text("utf-8"))  # faster than nltk's streams

        def map_wn(self, version="wordnet"):
            """Return no map: other languages, which need one, are not read."""

    nltk.data.path.append(str(folder.resolve()))  # nltk takes no other folder
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "The multilingual functions")
            return list(Reader(str(folder.resolve()), None).all_synsets())
    except (WordNetError, ValueError, KeyError, IndexError, AssertionError, StopIteration) as e:
        raise InputError(
            f"{folder}: not WordNet's database files ({type(e).__name__}: {e}); copy them again."
        ) from None
    finally:
        nltk.data.path.pop()


def _related(synset):
    """Yield (relation, synset) of each relation of a synset and of its words."""
    for name in SYNSET_RELATIONS:
        for other in getattr(synset, f"{name}s")():
            yield name, other
    for lemma in synset.lemmas():
        for name in LEMMA_RELATIONS:
            for other in getattr(lemma, f"{name}s")():
                yield name, other.synset()


def _read_senses(folder, places):
    """Return {lemma: {part of speech: (senses in tagged text, ids)}} of the index files (wndb(5)).

    Args:
        folder: the folder.
        places: {(part of speech, offset): id}.
    """
    senses = collections.defaultdict(dict)
    for part, letter in PARTS.items():
        path = folder / f"index.{part}"
        for number, line in read_lines(path):
            if line.startswith(" "):  # the licence
                continue
            fields = line.split()
            try:
                count = int(fields[2])
                tagged = int(fields[-count - 1])
                synsets = [places[letter, int(offset)] for offset in fields[-count:]]
            except (IndexError, ValueError, KeyError):
                raise InputError(
                    f"{path}, line {number}: not a lemma with the offsets of its synsets; copy "
                    "WordNet's files again."
                ) from None
            senses[fields[0].replace("_", " ")][letter] = tagged, synsets
    return senses


def _add_exceptions(folder, senses):
    """Add the irregular forms of words, with the senses of their base forms."""
    for part, letter in PARTS.items():
        for _, line in read_lines(folder / f"{part}.exc"):
            form, *bases = (word.replace("_", " ") for word in line.split())
            for base in bases:
                if letter in senses.get(base, {}):
                    tagged, synsets = senses[form].get(letter, (0, []))
                    more_tagged, more = senses[base][letter]
                    senses[form][letter] = tagged + more_tagged, [*synsets, *more]


def _by_frequency(parts):
    """Return the ids of a lemma, each once, the part of speech with more tagged senses first."""
    ordered = sorted(parts, key=lambda part: -part[0])
    return list(dict.fromkeys(i for _, synsets in ordered for i in synsets))
