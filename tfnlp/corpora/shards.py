"""A corpus on disk: shards of tokenised documents, an index of each, and a manifest of all.

| file | what |
| --- | --- |
| `shard-00000.tfrecord` | documents, as `tfnlp.corpora.records` describes them |
| `shard-00000.npy` | (records, 4) int64: where each ends, its tokens, its sentences, `continues` |
| `shard-00000.sentences.npy` | (sentences,) int32: the tokens of each, as the records say |
| `manifest.json` | what the corpus was made by, counts, and each shard's sizes and SHA-256 |

Until all shards are there each one has a `shard-00000.json` of its own instead of the manifest.
"""

import hashlib
import io
import json
import pathlib

import numpy as np

from tfnlp.corpora.documents import encode_documents
from tfnlp.corpora.records import document_to_bytes, frame
from tfnlp.errors import InputError
from tfnlp.files import read_json, replaced_when_whole, write_json

FORMAT = 1
MANIFEST = "manifest.json"
# What the files of a shard end in.
SUFFIXES = ("tfrecord", "npy", "sentences.npy")
# A longer document is several records, of some more tokens each, to be read in parts.
RECORD_TOKENS = 1024
# What to do about damage.
MEND = "copy the folder again, or prepare the corpus anew."
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
    all_lengths = [np.zeros(0, "int32")]
    digest, unknown = hashlib.sha256(), tokenizer.unknown_token_id
    path = shard_path(folder, number, "tfrecord")
    with replaced_when_whole(path) as temporary, open(temporary, "wb") as file:
        for token_ids, lengths in encode_documents(texts, tokenizer, sentences):
            if not len(token_ids):
                counts["empty"] += 1
                continue
            all_lengths.append(lengths.astype("int32"))
            counts["documents"] += 1
            counts["unknown"] += int(np.count_nonzero(token_ids == unknown))
            for continues, (ids, own) in enumerate(_records(token_ids, lengths)):
                record = frame(document_to_bytes(ids, own, continues > 0))
                file.write(record)
                digest.update(record)
                end += len(record)
                rows.append((end, len(ids), len(own), continues > 0))
    rows = np.array(rows, "int64").reshape(-1, 4)
    counts |= {"tokens": int(rows[:, 1].sum()), "sentences": int(rows[:, 2].sum())}
    text_bytes = sum(len(text.encode(errors="surrogatepass")) for text in texts)
    index_hash = _save(shard_path(folder, number, "npy"), rows)
    all_lengths = np.concatenate(all_lengths)
    sentences_hash = _save(shard_path(folder, number, "sentences.npy"), all_lengths)
    shard = {
        "file": path.name,
        "bytes": end,
        "sha256": digest.hexdigest(),
        "index_sha256": index_hash,
        "sentences_sha256": sentences_hash,
        "texts": texts_hash,
        "text_bytes": text_bytes,
        "records": len(rows),
        **counts,
    }
    write_json(shard_path(folder, number, "json"), shard)  # last: the shard is whole
    return shard


def _save(path, array):
    """Saves an array, whole or not at all, and gives the SHA-256 of the file."""
    content = io.BytesIO()
    np.save(content, array)
    with replaced_when_whole(path) as temporary:
        pathlib.Path(temporary).write_bytes(content.getvalue())
    return hashlib.sha256(content.getvalue()).hexdigest()


def _records(token_ids, lengths):
    """Yields the ids and the sentences' tokens of each record of a document.

    A record ends with the sentence that reaches `RECORD_TOKENS`.
    """
    ends, start, sentence = np.cumsum(lengths), 0, 0
    while start < len(token_ids):
        last = min(np.searchsorted(ends, start + RECORD_TOKENS), len(ends) - 1)
        yield token_ids[start : ends[last]], lengths[sentence : last + 1]
        start, sentence = int(ends[last]), last + 1


def read_index(folder, shard, number):
    """The index of a shard, (records, 4) int64, checked against the manifest.

    Raises:
        InputError: if the shard or its index is missing, cut, or another one.
    """
    path = shard_path(folder, number, "tfrecord")
    try:
        size = path.stat().st_size
    except OSError as e:
        raise _unreadable(e) from None
    if size != shard["bytes"]:
        raise InputError(f"{path} has {size} bytes, but {shard['bytes']} by the manifest; {MEND}")
    return _load(shard_path(folder, number, "npy"), shard["index_sha256"])


def read_sentence_lengths(folder, shard, number):
    """The tokens of each sentence of a shard, (sentences,) int32, checked likewise."""
    return _load(shard_path(folder, number, "sentences.npy"), shard["sentences_sha256"])


def _load(path, expected):
    """The array of a file with a SHA-256."""
    try:
        content = path.read_bytes()
    except OSError as e:
        raise _unreadable(e) from None
    if hashlib.sha256(content).hexdigest() != expected:
        raise InputError(f"{path} is damaged, or of another shard; {MEND}")
    return np.load(io.BytesIO(content), allow_pickle=False)


def _unreadable(error):
    if isinstance(error, FileNotFoundError):
        return InputError(f"{error.filename} is missing from the prepared corpus; {MEND}")
    return InputError(f"{error.filename} cannot be read ({error.strerror}); {MEND}")


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
