"""Tokenisation of large text files into a corpus on disk, shard by shard."""

import dataclasses
import functools
import hashlib
import itertools
import os
import pathlib

import numpy as np

from tfnlp.corpora.documents import DOCUMENTS, SENTENCES, find_files, read_documents
from tfnlp.corpora.file_ranges import as_file, plan_ranges
from tfnlp.corpora.shards import (
    ARRAYS,
    MANIFEST,
    make_manifest,
    read_array,
    read_manifest,
    shard_path,
    tokenizer_hash,
    write_shard,
)
from tfnlp.text.tokenizers.tokenizer import Tokenizer
from tfnlp.utils.errors import InputError
from tfnlp.utils.files import atomic_replace, make_folder, read_json, write_json
from tfnlp.utils.locks import held_alone
from tfnlp.utils.settings import Settings, setting
from tfnlp.utils.shard_work import in_processes, run_shards

# The settings of an unfinished corpus.
SETTINGS = "settings.json"


@dataclasses.dataclass(frozen=True)
class CorpusSettings(Settings):
    """Settings that decide the contents of a prepared corpus.

    Args: as in the help of their fields. The last document of a shard may exceed `shard_mb`.

    Raises:
        InputError: if a value is unknown, or `shard_mb` is below 1e-6.
    """

    documents: str = setting(
        "blank_lines",
        "Separator of documents in plain text: blank lines, lines (each line is a document) or "
        "files (each file is one).",
        choices=DOCUMENTS,
    )
    sentences: str = setting(
        "split",
        "Separator of sentences: rules for English and Korean (split), or lines. A sentence never "
        "spans lines.",
        choices=SENTENCES,
    )
    text_column: str = setting("sentence", "Column of the text in tables; in JSON also a path.")
    deduplicate: bool = setting(
        False,
        "Leave out duplicates of documents, up to white space; reads the files twice, and takes "
        "some 100 bytes of memory for each document.",
    )
    shard_mb: float = setting(
        8,
        "Megabytes of files in a shard. Each process holds one shard in memory.",
        low=1e-6,
    )


def prepare_corpus(paths, tokenizer, output_dir, settings=None, processes=1, map_shards=None):
    """Prepare a corpus in a folder that `ShardedCorpus` opens.

    Each shard is made from a range of the files alone and written atomically, so a killed
    preparation resumes at the missing shards when it is called again. The files are identical byte
    for byte, whether it is resumed or not and whoever makes the shards. To leave out duplicates,
    the files are read once more before, and memory takes some 100 bytes a document.

    Args:
        paths: text files, or patterns as in `find_files`.
        tokenizer: see `tfnlp.text`.
        output_dir: the folder, created if it is missing.
        settings: a `CorpusSettings`; the defaults where None.
        processes: the number of processes that tokenise.
        map_shards: of `tfnlp.utils.shard_work`, in place of `processes`, such as
            `in_beam(runner)`. All its workers must see the same files.

    Returns:
        The manifest.

    Raises:
        InputError: if files cannot be read or hold no text, if the folder holds another corpus, or
            if nothing can be written.
    """
    settings, map_shards = settings or CorpusSettings(), map_shards or in_processes(processes)
    files = [(path.absolute(), path.stat().st_size) for path in find_files(paths)]
    # The modification time can be set back. Equal times hold when a clock was set back, too.
    changed = [path.stat().st_ctime_ns for path, _ in files]
    shards = plan_ranges(files, settings.shard_mb, settings.documents)
    stored = {"tokenizer": tokenizer_hash(tokenizer), **dataclasses.asdict(settings)}
    folder = pathlib.Path(output_dir).absolute()
    make_folder(folder)
    refusal = f"{folder} is being prepared by another process; wait, or choose another folder."
    with held_alone(os.open(folder, os.O_RDONLY), refusal):
        if (folder / MANIFEST).exists():
            return _finished(folder, shards, stored, files, changed)
        _take_up(folder, stored)
        duplicates = [()] * len(shards)
        if settings.deduplicate:
            keys = functools.partial(_key_writer, folder, settings.text_column)
            run_shards(keys, list(enumerate(shards)), "reading", map_shards)
            duplicates = _find_duplicates(folder, len(shards))
        pad_token = tokenizer.token(tokenizer.pad_token_id)
        load = functools.partial(_shard_maker, folder, settings, tokenizer.to_json(), pad_token)
        items = list(zip(itertools.count(), shards, duplicates))
        run_shards(load, items, "preparing", map_shards)
        entries = [read_json(shard_path(folder, i, "json")) for i in range(len(shards))]
        manifest = make_manifest(stored, files, changed, entries)
        if not manifest["counts"]["tokens"]:
            raise InputError(f"{files[0][0]} and the like hold no text; give files with text.")
        write_json(folder / MANIFEST, manifest)
        _clean(folder, len(shards))
    return manifest


class ShardTexts:
    """Documents of a shard, an iterable of strings, with counts of those that were read.

    Args:
        ranges: a list of `FileRange`.
        text_column: as in `read_documents`.
        duplicates: the places of documents to leave out, among those with text.
    """

    def __init__(self, ranges, text_column, duplicates=()):
        self._ranges, self._text_column = ranges, text_column
        self._duplicates = frozenset(duplicates)

    def __iter__(self):
        self.empty = self.bytes = place = 0
        self._digest = hashlib.sha256()
        for part in self._ranges:
            with as_file(part) as path:
                # Rows of tables have no unit.
                paths = [] if path is None else [path]
                for text in read_documents(paths, part.unit, self._text_column):
                    if not text:
                        self.empty += 1
                        continue
                    encoded = text.encode(errors="surrogatepass")
                    self._digest.update(len(encoded).to_bytes(8, "little"))
                    self._digest.update(encoded)
                    if place not in self._duplicates:
                        self.bytes += len(encoded)
                        yield text
                    place += 1

    def facts(self):
        """Return the counts and the hash of the documents read, for the manifest."""
        return {
            "texts": self._digest.hexdigest(),
            "text_bytes": self.bytes,
            "duplicates": len(self._duplicates),
            "empty": self.empty,
        }


def _texts_hash(texts):
    for _ in texts:
        pass
    return texts.facts()["texts"]


def _key_writer(folder, text_column):
    """Return a function that writes the hash of each document of a shard, 128 bits."""

    def write(item):
        number, ranges = item
        # Among 10^12 documents two collide with a probability of 1 in 10^15.
        keys = [
            hashlib.blake2b(
                " ".join(text.split()).encode(errors="surrogatepass"), digest_size=16
            ).digest()
            for text in ShardTexts(ranges, text_column)
        ]
        with atomic_replace(shard_path(folder, number, "keys")) as temporary:
            pathlib.Path(temporary).write_bytes(b"".join(keys))

    return write


def _find_duplicates(folder, shards):
    """Return the places of the documents of each shard that equal an earlier one, lists."""
    paths = [shard_path(folder, number, "keys") for number in range(shards)]
    keys = [np.fromfile(path, "V16") for path in paths]
    ends = np.cumsum([len(part) for part in keys])
    is_first = np.zeros(ends[-1], bool)
    is_first[np.unique(np.concatenate(keys), return_index=True)[1]] = True
    return [np.flatnonzero(~part).tolist() for part in np.split(is_first, ends[:-1])]


def _shard_maker(folder, settings, tokenizer_json, pad_token):
    """Return a function that writes a shard, unless it is there.

    It takes the number of the shard, its `FileRange`s, and the places of duplicates. It raises an
    InputError if the shard is there but of other texts.
    """
    tokenizer = Tokenizer.from_json(tokenizer_json, pad_token)

    def make(item):
        number, ranges, duplicates = item
        texts = ShardTexts(ranges, settings.text_column, duplicates)
        if not _is_written(folder, number, texts):
            write_shard(folder, number, texts, tokenizer=tokenizer, sentences=settings.sentences)

    return make


def _is_written(folder, number, texts):
    """Return whether a whole shard of these texts is there.

    Raises:
        InputError: if it was made from other texts.
    """
    path = shard_path(folder, number, "json")
    if not path.exists():
        return False
    shard, _ = read_json(path), _texts_hash(texts)
    facts = texts.facts()
    # The bytes tell other duplicates of the same number apart.
    if any(shard.get(name) != facts[name] for name in ("texts", "text_bytes", "duplicates")):
        raise InputError(
            f"{shard_path(folder, number)} was written from other texts; give the "
            "same files, or another folder."
        )
    try:
        for name in ARRAYS:
            read_array(folder, shard, number, name)
    except InputError:
        return False  # will be written again
    return True


def _finished(folder, shards, stored, files, changed):
    """Return the manifest of a finished corpus after checking it against the request."""
    manifest = read_manifest(folder)
    _check_settings(folder, manifest["settings"], stored)
    if manifest["files"] != [[str(path), size] for path, size in files]:
        raise InputError(
            f"{folder} holds a corpus of other files, such as {manifest['files'][0][0]}; choose "
            "another folder."
        )
    if manifest.get("changed") != changed:  # perhaps merely copied: the contents decide
        hashes = [_texts_hash(ShardTexts(ranges, stored["text_column"])) for ranges in shards]
        if hashes != [shard["texts"] for shard in manifest["shards"]]:
            raise InputError(
                f"{folder} holds a corpus of other texts than {files[0][0]} and the like "
                "have now; choose another folder."
            )
    return manifest


def _take_up(folder, settings):
    """Start a corpus, or resume one with the same settings."""
    stored = folder / SETTINGS
    if stored.exists():
        _check_settings(folder, read_json(stored), settings)
    elif any(not path.name.startswith(f".{SETTINGS}.") for path in folder.iterdir()):
        raise InputError(f"{folder} holds other files and no corpus; choose another folder.")
    for pattern in (".shard-*", f".{SETTINGS}.*", f".{MANIFEST}.*"):  # left by a killed run
        for path in folder.glob(pattern):
            path.unlink()
    write_json(stored, settings)


def _check_settings(folder, stored, settings):
    for name in sorted(stored.keys() | settings):
        stored_value, value = stored.get(name), settings.get(name)
        if stored_value != value:
            other = f"{name}={stored_value}, here {name}={value}"
            other = "another tokenizer" if name == "tokenizer" else other
            raise InputError(f"{folder} holds a corpus of {other}; choose another folder.")


def _clean(folder, shards):
    """Remove the files that only an unfinished corpus has."""
    (folder / SETTINGS).unlink(missing_ok=True)
    kept = {shard_path(folder, i, f"{name}.npy") for i in range(shards) for name in ARRAYS}
    for path in {*folder.glob("shard-*")} - kept:
        path.unlink()
