"""Index of texts by the meaning of their vectors, on disk: written, and searched.

A folder has `index.usearch`, a graph of the vectors (Malkov & Yashunin 2018, 'HNSW') that usearch
reads in many languages; `texts.jsonl`, the text of each number; `index.json`, what is in it; and
of bits `vectors.i8`. docs/similar_texts.md has the format. Needs neither TensorFlow nor Keras.
"""

import dataclasses
import json
import pathlib

import numpy as np
from absl import logging

from tfnlp.utils.errors import InputError, needs_packages
from tfnlp.utils.files import atomic_replace, read_json, write_json, write_json_lines
from tfnlp.utils.settings import Settings, setting

FACTS, GRAPH, TEXTS, VECTORS = "index.json", "index.usearch", "texts.jsonl", "vectors.i8"
# Metric and type of usearch for each precision.
NUMBERS = {"float32": ("cos", "f32"), "int8": ("cos", "i8"), "bits": ("hamming", "b1")}
# Texts of the graph that a search compares with at once: usearch's own 64 find 1.7 % fewer.
EXPANSION = 128
# Hits among bits that are scored again, for each that is asked for: 10 find 10 % fewer.
CANDIDATES = 40
# Least cosine of a text's vector with that in the index. A file of 8 bits has 0.99 with its model,
# another model about 0.
SAME_MODEL = 0.95


@dataclasses.dataclass(frozen=True)
class IndexSettings(Settings):
    """Settings of an index, described by the help of their fields."""

    precision: str = setting(
        "int8",
        "Numbers of the vectors: float32, int8, or bits with int8 to score the first hits again.",
        choices=("float32", "int8", "bits"),
    )
    dims: int | None = setting(
        None,
        "First dimensions of the vectors to keep, of a model with `matryoshka_dims`; all if not "
        "given.",
        low=1,
    )


@dataclasses.dataclass(frozen=True)
class Hit:
    """Text that a search found.

    Args:
        text: of the index.
        source: of the text, such as "notes.txt, line 3".
        score: cosine of its vector with the query's.
    """

    text: str
    source: str
    score: float


def write_index(folder, texts, embedder, settings=None):
    """Write an index of texts.

    Args:
        folder: created if need be.
        texts: (text, source) pairs.
        embedder: a `tfnlp.pipelines.Embedder`, of a file or of a Keras model; texts begin with its
            prompt "document" or "passage", if it has one.
        settings: `IndexSettings`; its defaults where None.

    Returns:
        The vectors (texts, D) float32 that were rounded.

    Raises:
        InputError: without texts, for an empty text, for a model that knows no word of them or has
            fewer dimensions, if usearch is not installed, or a file cannot be written.
    """
    folder, settings = pathlib.Path(folder), settings or IndexSettings()
    new_graph = _usearch()
    whole = _vectors(texts, embedder, settings.dims)
    vectors = _first(whole, settings.dims)
    known = int(np.abs(whole).any(axis=1).argmax())  # not one of unknown tokens alone
    facts = {
        "version": 1,
        "precision": settings.precision,
        "dimensions": vectors.shape[1],
        "count": len(texts),
        "scale": float(127 / max(np.abs(vectors).max(), 1e-12)),
        "check": {"text": known, "vector": whole[known].tolist()},
    }
    (folder / FACTS).unlink(missing_ok=True)
    rows = rounded(vectors, facts)
    groups = _equal_rows(rows)
    metric, dtype = NUMBERS[settings.precision]
    graph = new_graph(ndim=vectors.shape[1], metric=metric, dtype=dtype)
    # One thread adds them in order, so that the same texts give the same graph.
    graph.add(np.array([*groups]), rows[[*groups]], threads=1)
    with atomic_replace(folder / GRAPH) as temporary:
        graph.save(temporary)
    if settings.precision == "bits":
        with atomic_replace(folder / VECTORS) as temporary:
            _as_int8(vectors, facts["scale"]).tofile(temporary)
    else:
        (folder / VECTORS).unlink(missing_ok=True)  # of an index that was here
    lines = [{"text": text, "source": source} for text, source in texts]
    for first, others in groups.items():
        if others:
            lines[first]["same"] = others
    write_json_lines(folder / TEXTS, lines)
    write_json(folder / FACTS, facts)  # last, so that a folder with it has all of them
    return vectors


def _equal_rows(rows):
    """Return {number of a row: numbers of the later rows that equal it}, in order.

    A graph with many equal rows links them with each other alone, and other rows are not found.
    """
    groups, first = {}, {}
    for number, row in enumerate(rows):
        known = first.setdefault(row.tobytes(), number)
        groups.setdefault(known, []).extend([number] * (known != number))
    return groups


def _vectors(texts, embedder, dims):
    """Return the vectors of (text, source) pairs, of length 1 and of `dims` entries or more."""
    for text, source in texts:
        if not text.strip():
            raise InputError(f"{source} is an empty text; write one, or leave it out.")
    if not texts:
        raise InputError("There is no text to index; give some.")
    strings, prompt = [text for text, _ in texts], embedder.text_prompt
    if cut := np.count_nonzero(embedder.encode(strings, prompt=prompt).truncated):
        logging.warning(
            "%d of %d texts have more than the model's %d tokens, and are found by their "
            "beginning alone; split them.",
            *(cut, len(texts), embedder.max_length),
        )
    # Each once, as a text's vector differs in its last bits from batch to batch.
    places = {text: place for place, text in enumerate(dict.fromkeys(strings))}
    vectors = embedder.embed([*places], prompt=prompt)
    vectors = vectors[[places[text] for text in strings]]
    width = vectors.shape[1]
    if (dims or 0) > width:
        raise InputError(
            f"dims={dims} is above the {width} dimensions of the model's vectors; give fewer."
        )
    silent = np.count_nonzero(~vectors.any(axis=1))
    if silent == len(texts):
        raise InputError("The model knows no word of the texts; give another model.")
    if silent:
        logging.warning(
            "%d of %d texts have no word that the model knows, and are not found.",
            *(silent, len(texts)),
        )
    return _first(vectors, width)


class TextIndex:
    """Index of `write_index`, read in place, with the model of its vectors.

    Args:
        folder: of the index.
        embedder: as in `write_index`, such as a `distill.runtime.TextEmbedder`; its model may be
            another form of the same, such as an exported file of a folder.

    Raises:
        InputError: if a file is missing, the index is of another model, or usearch is not
            installed.
    """

    def __init__(self, folder, embedder):
        self._folder = folder = pathlib.Path(folder)
        if not (folder / FACTS).exists():
            raise InputError(f"{folder} has no {FACTS}; give the folder of an index.")
        self.facts, self.embedder = read_json(folder / FACTS), embedder
        with open(folder / TEXTS, encoding="utf-8") as file:
            self.texts = [json.loads(line) for line in file]
        if len(self.texts) != self.facts["count"]:
            raise InputError(
                f"{folder / TEXTS} has {len(self.texts)} lines for {self.facts['count']} texts of "
                "the index; index the texts again."
            )
        self._graph = _usearch().restore(folder / GRAPH, view=True)
        self._graph.expansion_search = EXPANSION
        self._vectors = None
        if self.facts["precision"] == "bits":
            shape = self.facts["count"], self.facts["dimensions"]
            self._vectors = np.memmap(folder / VECTORS, "int8", "r", shape=shape)
        check = self.facts["check"]
        texts = [self.texts[check["text"]]["text"]]
        vectors = embedder.embed(texts, prompt=embedder.text_prompt)
        width = len(check["vector"])
        if vectors.shape[1] < width or _first(vectors, width)[0] @ check["vector"] < SAME_MODEL:
            raise InputError(
                f"{folder} is an index of another model's vectors; give that model, or index the "
                "texts again."
            )

    @property
    def megabytes(self):
        """Size of the vectors on disk."""
        paths = (self._folder / name for name in (GRAPH, VECTORS))
        return sum(path.stat().st_size for path in paths if path.exists()) / 1e6

    def search(self, query, count=10):
        """Return the `Hit`s nearest to a text, the nearest first.

        Raises:
            InputError: for an empty query, one of more tokens than the model reads, and one of
                unknown tokens alone.
        """
        if not query.strip():
            raise InputError("The query is empty; give a text to search for.")
        prompt = self.embedder.query_prompt
        if np.any(self.embedder.encode([query], prompt=prompt).truncated):
            raise InputError(
                f"The query has more than the {self.embedder.max_length} tokens that the model "
                "reads; shorten it."
            )
        vectors = self.embedder.embed([query], prompt=prompt)
        vector = _first(vectors, self.facts["dimensions"])[0]
        if not vector.any():
            raise InputError(
                "The query has no vector, as the model knows no word of it; ask in other words."
            )
        numbers, scores = self.nearest(vector, count)
        rows = ((self.texts[i], float(score)) for i, score in zip(numbers, scores, strict=True))
        return [Hit(row["text"], row["source"], score) for row, score in rows]

    def nearest(self, vector, count=10):
        """Return the numbers and the scores of the texts nearest to a vector (D,) of length 1."""
        query = rounded(vector[None], self.facts)[0]
        if self._vectors is None:
            matches = self._graph.search(query, count)
            numbers, copies = self._with_equal(matches.keys)
            return numbers[:count], np.repeat(1 - matches.distances, copies)[:count]
        keys = self._graph.search(query, max(EXPANSION, CANDIDATES * count)).keys
        numbers, _ = self._with_equal(keys)
        rows = self._vectors[numbers] / self.facts["scale"]  # (candidates, D)
        scores = rows @ vector / np.maximum(np.linalg.norm(rows, axis=1), 1e-12)
        best = np.argsort(-scores, kind="stable")[:count]
        return numbers[best], scores[best]

    def _with_equal(self, keys):
        """Return the numbers of texts of the same vectors too, and how many each key has."""
        groups = [[key, *self.texts[key].get("same", ())] for key in keys.tolist()]
        return np.array([i for group in groups for i in group], int), [*map(len, groups)]


def recall(index, vectors, queries=None, count=10):
    """Return the share of the exact nearest texts that an index finds, from 0 to 1.

    A text as near as the last one of these, such as an equal one, counts in its place.

    Args:
        index: a `TextIndex`.
        vectors: (texts, D), of `write_index`.
        queries: (n, D), of length 1; some 200 of `vectors` where None.
        count: of the nearest texts.
    """
    if queries is None:
        queries = vectors[:: -(-len(vectors) // 200)]
    shares = []
    for query in queries:
        cosines = vectors @ query
        nearest = np.sort(cosines)[-count:]
        of_hits = cosines[index.nearest(query, count)[0]]
        shares.append(np.count_nonzero(of_hits >= nearest[0] - 1e-6) / len(nearest))
    return float(np.mean(shares))


def rounded(vectors, facts):
    """Return vectors (n, D) in the numbers of an index: int8, or bits, 8 in a byte."""
    if facts["precision"] == "int8":
        return _as_int8(vectors, facts["scale"])
    return np.packbits(vectors > 0, axis=1) if facts["precision"] == "bits" else vectors


def _as_int8(vectors, scale):
    return np.clip(np.round(vectors * scale), -127, 127).astype("int8")


def _first(vectors, dims):
    """Return the first entries of vectors, of length 1."""
    vectors = vectors[:, :dims]
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)


def _usearch():
    with needs_packages("An index of texts", "usearch"):
        from usearch.index import Index
    return Index
