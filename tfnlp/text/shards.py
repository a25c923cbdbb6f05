"""A corpus on disk: shards of tokenised documents, an index of each, and a manifest of all.

| file | what |
| --- | --- |
| `shard-00000.tfrecord` | documents, as `tfnlp.text.records` describes them |
| `shard-00000.npy` | (documents, 3) int64: where each record ends, its tokens, its sentences |
| `manifest.json` | what the corpus was made by, counts, and each shard's sizes and SHA-256 |

Until all shards are there each one has a `shard-00000.json` of its own instead of the manifest.
"""

import hashlib
import io
import json
import pathlib

import numpy as np

from tfnlp.errors import InputError
from tfnlp.files import read_json, replaced_when_whole, write_json
from tfnlp.text.documents import encode_documents
from tfnlp.text.records import document_to_bytes, frame

FORMAT = 1
MANIFEST = "manifest.json"
# What is counted of each shard, and summed over all.
COUNTS = ("documents", "sentences", "tokens", "unknown", "empty")


def shard_path(folder, number, suffix):
    """The path of a file of a shard."""
    return pathlib.Path(folder) / f"shard-{number:05d}.{suffix}"


def write_shard(folder, number, texts, texts_hash, tokenizer, sentences):
    """Tokenises texts and writes them as a shard, whole or not at all.

    Args:
        folder: of the corpus.
        number: of the shard.
        texts: a list of strings, a document each.
        texts_hash: what tells them from other texts.
        tokenizer: see `tfnlp.text`.
        sentences: as `encode_documents` takes it.

    Returns:
        What the manifest says of the shard.
    """
    rows, counts, end = [], dict.fromkeys(COUNTS, 0), 0
    digest, unknown = hashlib.sha256(), tokenizer.unknown_token_id
    path = shard_path(folder, number, "tfrecord")
    with replaced_when_whole(path) as temporary, open(temporary, "wb") as file:
        for token_ids, lengths in encode_documents(texts, tokenizer, sentences):
            if not len(token_ids):
                counts["empty"] += 1
                continue
            record = frame(document_to_bytes(token_ids, lengths))
            file.write(record)
            digest.update(record)
            end += len(record)
            rows.append((end, len(token_ids), len(lengths)))
            counts["unknown"] += int(np.count_nonzero(token_ids == unknown))
    rows = np.array(rows, "int64").reshape(-1, 3)
    counts |= {"documents": len(rows)}
    counts |= {"tokens": int(rows[:, 1].sum()), "sentences": int(rows[:, 2].sum())}
    index = io.BytesIO()
    np.save(index, rows)
    with replaced_when_whole(shard_path(folder, number, "npy")) as temporary:
        pathlib.Path(temporary).write_bytes(index.getvalue())
    shard = {
        "file": path.name,
        "bytes": end,
        "sha256": digest.hexdigest(),
        "index_sha256": hashlib.sha256(index.getvalue()).hexdigest(),
        "texts": texts_hash,
        **counts,
    }
    write_json(shard_path(folder, number, "json"), shard)  # last: the shard is whole
    return shard


def read_index(folder, shard, number):
    """The index of a shard, (documents, 3) int64, checked against the manifest.

    Raises:
        InputError: if the shard or its index is missing, cut, or another one.
    """
    records, index = (shard_path(folder, number, suffix) for suffix in ("tfrecord", "npy"))
    mend = "copy the folder again, or prepare the corpus anew."
    try:
        size, content = records.stat().st_size, index.read_bytes()
    except FileNotFoundError as e:
        raise InputError(f"{e.filename} is missing from the prepared corpus; {mend}") from None
    except OSError as e:
        raise InputError(f"{e.filename} cannot be read ({e.strerror}); {mend}") from None
    if size != shard["bytes"]:
        raise InputError(
            f"{records} has {size} bytes, but {shard['bytes']} by the manifest; {mend}"
        )
    if hashlib.sha256(content).hexdigest() != shard["index_sha256"]:
        raise InputError(f"{index} is damaged, or the index of another shard; {mend}")
    return np.load(io.BytesIO(content), allow_pickle=False)


def make_manifest(settings, files, shards, duplicates, empty):
    """The manifest of a corpus.

    Args:
        settings: what decides the ids, a dict.
        files: (path, bytes) of each file that was read.
        shards: what `write_shard` gave.
        duplicates: how many documents were left out, as they stood there before.
        empty: how many had no text.
    """
    counts = {name: sum(shard[name] for shard in shards) for name in COUNTS}
    counts |= {"duplicates": duplicates, "empty": counts["empty"] + empty}
    manifest = {"format": FORMAT, "settings": settings, "counts": counts, "shards": shards}
    manifest["fingerprint"] = _fingerprint(manifest)
    return manifest | {"files": [[str(path), size] for path, size in files]}


def read_manifest(folder):
    """The manifest of a corpus.

    Raises:
        InputError: if there is none, it is damaged or of another format.
    """
    path = pathlib.Path(folder) / MANIFEST
    if not path.exists():
        if list(path.parent.glob("shard-*")):
            raise InputError(
                f"{folder} holds a corpus that is not prepared to its end; prepare_corpus with "
                "the same flags goes on."
            )
        raise InputError(
            f"{folder} holds no {MANIFEST}; give a folder that prepare_corpus made, or text files."
        )
    manifest = read_json(path)
    if manifest.get("format", FORMAT) != FORMAT:
        raise InputError(
            f"{path} is of format {manifest['format']!r}, and {FORMAT} is read; prepare the "
            "corpus anew."
        )
    if manifest.get("fingerprint") != _fingerprint(manifest):
        raise InputError(f"{path} is damaged; copy the folder again, or prepare the corpus anew.")
    return manifest


def tokenizer_hash(tokenizer):
    """What tells a tokenizer from others, a SHA-256."""
    return hashlib.sha256(tokenizer.to_json().encode()).hexdigest()


def _fingerprint(manifest):
    """The SHA-256 of a manifest but for the names of the files, of which the ids do not depend."""
    decisive = {k: v for k, v in manifest.items() if k not in ("files", "fingerprint")}
    return hashlib.sha256(json.dumps(decisive, sort_keys=True).encode()).hexdigest()
