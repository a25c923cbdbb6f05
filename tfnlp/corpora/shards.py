"""Corpus format on disk: shards of tokenised documents, their indices and a manifest.

| file | contents |
| --- | --- |
| `shard-00000.tfrecord` | documents, in the format of `tfnlp.corpora.tfrecords` |
| `shard-00000.npy` | (records, 4) int64: end in bytes, tokens, sentences, `continues` |
| `shard-00000.sentences.npy` | (sentences,) int32: the number of tokens of each sentence |
| `manifest.json` | settings of the corpus, counts, and each shard's sizes and SHA-256 |

Until all shards are written, each has its own `shard-00000.json` in place of the manifest.
"""

import hashlib
import io
import json
import pathlib

import numpy as np

from tfnlp.corpora.documents import encode_documents
from tfnlp.corpora.tfrecords import document_to_bytes, frame
from tfnlp.utils.errors import InputError
from tfnlp.utils.files import atomic_replace, read_json, write_json

FORMAT = 1
MANIFEST = "manifest.json"
# The file suffixes of a shard.
SUFFIXES = ("tfrecord", "npy", "sentences.npy")
# A longer document is split into records that each reach this number of tokens, so that it can be
# read in parts.
RECORD_TOKENS = 1024
# The advice for damaged files.
MEND = "copy the folder again, or prepare the corpus anew."
# The counts of each shard, which are summed over all.
COUNTS = ("documents", "sentences", "tokens", "unknown", "empty")


def shard_path(folder, number, suffix):
    """Return the path of a file of a shard."""
    return pathlib.Path(folder) / f"shard-{number:05d}.{suffix}"


def write_shard(folder, number, texts, texts_hash, *, tokenizer, sentences):
    """Tokenise texts and write them as a shard, atomically.

    Args:
        folder: the folder of the corpus.
        number: the number of the shard.
        texts: a list of strings, one for each document.
        texts_hash: a hash of the texts.
        tokenizer: see `tfnlp.text`.
        sentences: as in `encode_documents`.

    Returns:
        The manifest entry of the shard.
    """
    rows, counts, end = [], dict.fromkeys(COUNTS, 0), 0
    all_lengths = [np.zeros(0, "int32")]
    digest, unknown = hashlib.sha256(), tokenizer.unknown_token_id
    path = shard_path(folder, number, "tfrecord")
    with atomic_replace(path) as temporary, open(temporary, "wb") as file:
        for token_ids, lengths in encode_documents(texts, tokenizer, sentences):
            if not len(token_ids):
                counts["empty"] += 1
                continue
            all_lengths.append(lengths.astype("int32"))
            counts["documents"] += 1
            counts["unknown"] += int(np.count_nonzero(token_ids == unknown))
            for continues, (ids, record_lengths) in enumerate(_records(token_ids, lengths)):
                record = frame(document_to_bytes(ids, record_lengths, continues > 0))
                file.write(record)
                digest.update(record)
                end += len(record)
                rows.append((end, len(ids), len(record_lengths), continues > 0))
    rows = np.array(rows, "int64").reshape(-1, 4)
    counts |= {"tokens": int(rows[:, 1].sum()), "sentences": int(rows[:, 2].sum())}
    shard = {
        "file": path.name,
        "bytes": end,
        "sha256": digest.hexdigest(),
        "index_sha256": _save(shard_path(folder, number, "npy"), rows),
        "sentences_sha256": _save(
            shard_path(folder, number, "sentences.npy"), np.concatenate(all_lengths)
        ),
        "texts": texts_hash,
        "text_bytes": sum(len(text.encode(errors="surrogatepass")) for text in texts),
        "records": len(rows),
        **counts,
    }
    write_json(shard_path(folder, number, "json"), shard)  # last: marks the shard as complete
    return shard


def _save(path, array):
    """Save an array atomically, and return the SHA-256 of the file."""
    content = io.BytesIO()
    np.save(content, array)
    with atomic_replace(path) as temporary:
        pathlib.Path(temporary).write_bytes(content.getvalue())
    return hashlib.sha256(content.getvalue()).hexdigest()


def _records(token_ids, lengths):
    """Yield the ids and sentence lengths of each record of a document.

    A record ends with the sentence that reaches `RECORD_TOKENS`.
    """
    ends, start, sentence = np.cumsum(lengths), 0, 0
    while start < len(token_ids):
        last = min(np.searchsorted(ends, start + RECORD_TOKENS), len(ends) - 1)
        yield token_ids[start : ends[last]], lengths[sentence : last + 1]
        start, sentence = int(ends[last]), last + 1


def read_index(folder, shard, number):
    """Read the index of a shard, (records, 4) int64, and check it against the manifest.

    Raises:
        InputError: if the shard or its index is missing, truncated or from another corpus.
    """
    path = shard_path(folder, number, "tfrecord")
    size = path.stat().st_size if path.exists() else 0
    if size != shard["bytes"]:
        raise InputError(f"{path} has {size} bytes, but {shard['bytes']} by the manifest; {MEND}")
    return _load(shard_path(folder, number, "npy"), shard["index_sha256"])


def read_sentence_lengths(folder, shard, number):
    """Read the sentence lengths of a shard, (sentences,) int32, and check their SHA-256."""
    return _load(shard_path(folder, number, "sentences.npy"), shard["sentences_sha256"])


def _load(path, expected):
    """Load the array of a file, which must have the SHA-256 `expected`."""
    content = path.read_bytes() if path.exists() else b""
    if hashlib.sha256(content).hexdigest() != expected:
        raise InputError(f"{path} is missing, damaged or of another shard; {MEND}")
    return np.load(io.BytesIO(content), allow_pickle=False)


def make_manifest(settings, files, shards, duplicates, empty):
    """Build the manifest of a corpus.

    Args:
        settings: the settings that determine the ids, a dict.
        files: (path, bytes) of each input file.
        shards: the results of `write_shard`.
        duplicates: the number of duplicate documents left out.
        empty: the number of documents without text.
    """
    counts = {name: sum(shard[name] for shard in shards) for name in COUNTS}
    counts |= {"duplicates": duplicates, "empty": counts["empty"] + empty}
    manifest = {"format": FORMAT, "settings": settings, "counts": counts, "shards": shards}
    manifest["fingerprint"] = _fingerprint(manifest)
    return manifest | {"files": [[str(path), size] for path, size in files]}


def read_manifest(folder):
    """Read the manifest of a corpus.

    Raises:
        InputError: if it is missing, damaged or of another format.
    """
    path = pathlib.Path(folder) / MANIFEST
    if not path.exists():
        advice = f"no {MANIFEST}; give a folder that prepare_corpus made, or text files."
        if list(path.parent.glob("shard-*")):
            advice = "an unfinished corpus; run prepare_corpus with the same settings to resume."
        raise InputError(f"{folder} holds {advice}")
    manifest = read_json(path)
    if manifest.get("fingerprint") != _fingerprint(manifest) or manifest["format"] != FORMAT:
        raise InputError(f"{path} is damaged or of another format; {MEND}")
    return manifest


def tokenizer_hash(tokenizer):
    """Return a SHA-256 that identifies a tokenizer."""
    return hashlib.sha256(tokenizer.to_json().encode()).hexdigest()


def _fingerprint(manifest):
    """Return the SHA-256 of a manifest without the file names, which do not affect the ids."""
    decisive = {k: v for k, v in manifest.items() if k not in ("files", "fingerprint")}
    return hashlib.sha256(json.dumps(decisive, sort_keys=True).encode()).hexdigest()
