"""Corpus format on disk: shards of tokenised documents as NumPy files, and a manifest.

| file | contents |
| --- | --- |
| `shard-00000.ids.npy` | (tokens,) uint16 or uint32, all documents concatenated |
| `shard-00000.sentences.npy` | (sentences,) int32: the number of tokens of each sentence |
| `shard-00000.documents.npy` | (documents, 2) int32: the numbers of tokens and of sentences |
| `manifest.json` | settings of the corpus, counts, and the SHA-256 of each file |

Until all shards are written, each has its own `shard-00000.json` in place of the manifest.
"""

import hashlib
import io
import json
import pathlib

import numpy as np

from tfnlp.corpora.documents import encode_documents
from tfnlp.utils.errors import InputError
from tfnlp.utils.files import atomic_replace, file_hash, read_json, write_json

FORMAT = 2
MANIFEST = "manifest.json"
# The arrays of a shard.
ARRAYS = ("ids", "sentences", "documents")
# The advice for damaged files.
MEND = "copy the folder again, or prepare the corpus anew."
# The counts of each shard, which are summed over all.
COUNTS = ("documents", "sentences", "tokens", "unknown", "duplicates", "empty")


def shard_path(folder, number, name="ids.npy"):
    """Return the path of a file of a shard."""
    return pathlib.Path(folder) / f"shard-{number:05d}.{name}"


def write_shard(folder, number, texts, *, tokenizer, sentences):
    """Tokenise texts and write them as a shard, atomically.

    Args:
        folder: the folder of the corpus.
        number: the number of the shard.
        texts: `ShardTexts`, which are read once.
        tokenizer: see `tfnlp.text`.
        sentences: as in `encode_documents`.

    Returns:
        The manifest entry of the shard.
    """
    dtype = "uint16" if tokenizer.vocabulary_size <= 1 << 16 else "uint32"
    ids, lengths, counts, empty = [np.zeros(0, dtype)], [np.zeros(0, "int32")], [], 0
    for token_ids, sentence_lengths in encode_documents(texts, tokenizer, sentences):
        if not len(token_ids):
            empty += 1
            continue
        ids.append(token_ids.astype(dtype))
        lengths.append(sentence_lengths.astype("int32"))
        counts.append((len(token_ids), len(sentence_lengths)))
    arrays = {
        "ids": np.concatenate(ids),
        "sentences": np.concatenate(lengths),
        "documents": np.array(counts, "int32").reshape(-1, 2),
    }
    sha256 = {
        name: _save(shard_path(folder, number, f"{name}.npy"), array)
        for name, array in arrays.items()
    }
    facts = texts.facts()
    shard = facts | {
        "bytes": shard_path(folder, number).stat().st_size,
        "sha256": sha256,
        "documents": len(counts),
        "sentences": len(arrays["sentences"]),
        "tokens": len(arrays["ids"]),
        "unknown": int(np.count_nonzero(arrays["ids"] == tokenizer.unknown_token_id)),
        "empty": facts["empty"] + empty,
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


def read_array(folder, shard, number, name, check=True):
    """Map an array of a shard into memory.

    Args:
        folder: the folder of the corpus.
        shard: the manifest entry of the shard.
        number: the number of the shard.
        name: of `ARRAYS`.
        check: whether to compare the file's SHA-256, which reads all of it.

    Raises:
        InputError: if the file is missing, or damaged or of another shard.
    """
    path = shard_path(folder, number, f"{name}.npy")
    try:
        if check and file_hash(path) != shard["sha256"][name]:
            raise InputError(f"{path} is damaged or of another shard; {MEND}")
        if not shard[{"ids": "tokens"}.get(name, name)]:
            return np.load(path)  # an empty array cannot be mapped
        return np.asarray(np.load(path, mmap_mode="r"))
    except OSError as e:
        raise InputError(f"{path} cannot be read ({e.strerror}); {MEND}") from None


def make_manifest(settings, files, changed, shards):
    """Build the manifest of a corpus.

    Args:
        settings: the settings that determine the ids, a dict.
        files: (path, bytes) of each input file.
        changed: the inode change time of each in nanoseconds, before it was read.
        shards: the results of `write_shard`.
    """
    counts = {name: sum(shard[name] for shard in shards) for name in COUNTS}
    manifest = {"format": FORMAT, "settings": settings, "counts": counts, "shards": shards}
    manifest["fingerprint"] = _fingerprint(manifest)
    return manifest | {
        "files": [[str(path), size] for path, size in files],
        "changed": changed,
    }


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
    """Return the SHA-256 of a manifest without names and times of files."""
    decisive = {k: v for k, v in manifest.items() if k not in ("files", "changed", "fingerprint")}
    return hashlib.sha256(json.dumps(decisive, sort_keys=True).encode()).hexdigest()
