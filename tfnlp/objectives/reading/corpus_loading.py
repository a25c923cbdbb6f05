"""Opening of corpora: text files tokenised in memory, or a prepared folder."""

import pathlib

import numpy as np

from tfnlp.corpora.documents import (
    encode_documents,
    find_files,
    has_columns,
    read_documents,
    warn_of_unknown,
)
from tfnlp.corpora.shards import read_manifest
from tfnlp.objectives.reading.corpus import Corpus
from tfnlp.objectives.reading.mixed_corpus import MixedCorpus
from tfnlp.objectives.reading.sharded_corpus import ShardedCorpus
from tfnlp.utils.errors import InputError
from tfnlp.utils.progress import progress_bar


def open_corpus(
    paths, tokenizer, documents="blank_lines", sentences="split", text_column="sentence"
):
    """Open a corpus.

    Args:
        paths: folders of `prepare_corpus`, or text files or patterns, one or more.
        tokenizer: see `tfnlp.text`; it must be that of a prepared folder.
        documents, text_column: of text files, as in `read_documents`.
        sentences: of text files, as in `encode_documents`.

    Returns:
        A `ShardedCorpus`, a `MixedCorpus` of several, or a `Corpus`. They have the same ids,
        documents and sentences if the folder was prepared from the files with the same settings.

    Raises:
        InputError: as in the functions above; for folders together with files; and for
            files without a token.
    """
    paths = [paths] if isinstance(paths, str | pathlib.Path) else list(paths)
    folders = [path for path in paths if pathlib.Path(path).is_dir()]
    if folders:
        if len(paths) > len(folders):
            raise InputError(
                f"{folders[0]} is a folder; give prepared folders alone, or text files alone."
            )
        corpora = [ShardedCorpus(folder, tokenizer) for folder in folders]
        for corpus in corpora:
            warn_of_unknown(corpus.unknown_share)
        return corpora[0] if len(corpora) == 1 else MixedCorpus(corpora)
    files = find_files(paths)
    total = sum(path.stat().st_size for path in files)
    with progress_bar(total=total, desc="tokenizing", unit="B", unit_scale=True, delay=5) as bar:
        texts = read_documents(
            files, documents, text_column, lambda read: bar.update(read - bar.n)
        )
        others = " and the other files" if len(files) > 1 else ""
        return corpus_of(texts, tokenizer, sentences, f"{files[0]}{others}")


def reading_settings(paths, documents, max_length):
    """Return how a corpus is split into texts, for the folder of a model trained on it.

    Arguments are as in `open_corpus`; `max_length` tokens are read together.

    Returns:
        A dict of `max_length` and `documents`; for prepared folders, the `documents` setting of
        the first one's preparation that splits texts. There is no `documents` if all files have
        columns, where each row is a document.
    """
    folders = [path for path in paths if pathlib.Path(path).is_dir()]
    sources = [
        (manifest["settings"]["documents"], [pathlib.Path(path) for path, _ in manifest["files"]])
        for manifest in map(read_manifest, folders)
    ]
    if files := [path for path in paths if path not in folders]:
        sources.append((documents, find_files(files)))
    split = [separator for separator, files in sources if not all(map(has_columns, files))]
    return {"max_length": max_length} | ({"documents": split[0]} if split else {})


def corpus_of(texts, tokenizer, sentences="split", source="The corpus"):
    """Build a `Corpus` from an iterable of documents, without those that have no token.

    Args:
        texts, tokenizer, sentences: as in `encode_documents`.
        source: of the texts, for the error.

    Raises:
        InputError: if there is no token.
    """
    ids, lengths, counts = [np.zeros(0, "int32")], [np.zeros(0, "int64")], []
    for token_ids, sentence_lengths in encode_documents(texts, tokenizer, sentences):
        if len(token_ids):
            ids.append(token_ids)
            lengths.append(sentence_lengths)
            counts.append(len(sentence_lengths))
    if not counts:
        raise InputError(f"{source} has no token; give files with text.")
    ends = np.cumsum(np.concatenate(lengths)), np.cumsum(counts, dtype="int64")
    corpus = Corpus(np.concatenate(ids), *ends)
    warn_of_unknown(np.mean(corpus.token_ids == tokenizer.unknown_token_id))
    return corpus
