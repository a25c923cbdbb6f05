"""Parallel tokenisation of large text files into a corpus on disk."""

import collections
import concurrent.futures
import contextlib
import dataclasses
import hashlib
import multiprocessing
import multiprocessing.connection
import os
import pathlib
import signal
import threading

from tfnlp.corpora.documents import DOCUMENTS, SENTENCES, find_files, read_documents
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
from tfnlp.text.tokenizer import Tokenizer
from tfnlp.utils.errors import InputError
from tfnlp.utils.files import make_folder, read_json, write_json
from tfnlp.utils.locks import held_alone
from tfnlp.utils.progress import progress_bar
from tfnlp.utils.settings import check_settings, setting

# The settings of an unfinished corpus.
SETTINGS = "settings.json"


@dataclasses.dataclass(frozen=True)
class CorpusSettings:
    """Settings that decide the contents of a prepared corpus.

    Args:
        documents, text_column: as in `read_documents`.
        sentences: as in `encode_documents`.
        deduplicate: whether to drop a document that equals an earlier one up to white space.
        shard_mb: the megabytes of UTF-8 text in a shard; the last document may exceed it.

    Raises:
        InputError: if a value is unknown, or `shard_mb` is below 1e-6.
    """

    documents: str = setting("blank_lines", "Separator of documents.", choices=DOCUMENTS)
    sentences: str = setting("split", "Separator of sentences.", choices=SENTENCES)
    text_column: str = "sentence"
    deduplicate: bool = False
    shard_mb: float = setting(8, "Megabytes of text in a shard.", low=1e-6)

    def __post_init__(self):
        check_settings(self)


def prepare_corpus(paths, tokenizer, output_dir, settings=None, processes=1):
    """Prepare a corpus in a folder that `ShardedCorpus` opens.

    This process reads the texts and removes duplicates; worker processes tokenise them shard by
    shard. Each shard is written atomically, so a killed preparation resumes at the missing shards
    when it is called again. The files are identical byte for byte, whether it is resumed or not
    and for any number of processes. Memory holds the texts of one shard more than there are
    processes, and some 100 bytes a document for duplicates.

    Args:
        paths: text files, or patterns as in `find_files`.
        tokenizer: see `tfnlp.text`.
        output_dir: the folder, created if it is missing.
        settings: a `CorpusSettings`; the defaults where None.
        processes: the number of processes that tokenise.

    Returns:
        The manifest.

    Raises:
        InputError: if files cannot be read or hold no text, if the folder holds another corpus, or
            if nothing can be written.
    """
    settings = settings or CorpusSettings()
    files = [(path.absolute(), path.stat().st_size) for path in find_files(paths)]
    stored = {"tokenizer": tokenizer_hash(tokenizer), **dataclasses.asdict(settings)}
    folder = pathlib.Path(output_dir)
    make_folder(folder)
    refusal = f"{folder} is being prepared by another process; wait, or choose another folder."
    with held_alone(os.open(folder, os.O_RDONLY), refusal):
        if (folder / MANIFEST).exists():
            return _finished(folder, settings, stored, files)
        _take_up(folder, stored)
        texts = _Texts(files, settings)
        total = sum(size for _, size in files)
        with progress_bar(total=total, desc="preparing", unit="B", unit_scale=True) as bar:
            with _workers(tokenizer, settings.sentences, processes) as submit:
                shards = _write_shards(folder, texts.shards(), submit, processes, bar)
            bar.update(total - bar.n)
        manifest = make_manifest(stored, files, shards, texts.duplicates, texts.empty)
        if not manifest["counts"]["tokens"]:
            raise InputError(f"{files[0][0]} and the like hold no text; give files with text.")
        write_json(folder / MANIFEST, manifest)
        _clean(folder, len(shards))
    return manifest


class _Texts:
    """Documents of files grouped into shards, with counts of those left out."""

    def __init__(self, files, settings):
        self.duplicates = self.empty = 0
        self._read = 0  # bytes read from the files
        paths = [path for path, _ in files]
        self._documents = read_documents(
            paths, settings.documents, settings.text_column, self._on_read
        )
        self._seen = set() if settings.deduplicate else None
        self._shard_bytes = settings.shard_mb * 1e6

    def _on_read(self, position):
        self._read = position

    def shards(self):
        """Yield (texts, hash, bytes read so far) of each shard.

        A shard has at least `shard_mb` megabytes, except the last; it ends with the document that
        reaches them.
        """
        texts, size_of_texts, digest = [], 0, hashlib.sha256()
        for text in self._documents:
            if not text:
                self.empty += 1
                continue
            if self._is_duplicate(text):
                self.duplicates += 1
                continue
            encoded = text.encode(errors="surrogatepass")
            digest.update(len(encoded).to_bytes(8, "little"))
            digest.update(encoded)
            texts.append(text)
            size_of_texts += len(encoded)
            if size_of_texts >= self._shard_bytes:
                yield texts, digest.hexdigest(), self._read
                texts, size_of_texts, digest = [], 0, hashlib.sha256()
        if texts:
            yield texts, digest.hexdigest(), self._read

    def _is_duplicate(self, text):
        if self._seen is None:
            return False
        words = " ".join(text.split()).encode(errors="surrogatepass")
        # 128 bits: among 10^12 documents two collide with a probability of 1 in 10^15.
        key = hashlib.blake2b(words, digest_size=16).digest()
        if key in self._seen:
            return True
        self._seen.add(key)
        return False


def _write_shards(folder, shards, submit, processes, bar):
    """Write the missing shards, and return the manifest entries of all.

    The bar shows the position in the files up to which shards are written.
    """
    entries, waiting = [], collections.deque()

    def finish():
        result, position = waiting.popleft()
        entries.append(result())
        bar.update(position - bar.n)

    for number, (texts, texts_hash, position) in enumerate(shards):
        result = _written(folder, number, texts_hash)
        if result is None:
            result = submit(folder, number, texts, texts_hash)
        waiting.append((result, position))
        del texts
        while len(waiting) > processes:
            finish()
    while waiting:
        finish()
    return entries


def _written(folder, number, texts_hash):
    """Return a function for the manifest entry of an existing shard, or None if there is none.

    Raises:
        InputError: if it was made from other texts.
    """
    path = shard_path(folder, number, "json")
    if not path.exists():
        return None
    shard = read_json(path)
    if shard.get("texts") != texts_hash:
        raise InputError(
            f"{shard_path(folder, number)} was written from other texts; give the "
            "same files, or another folder."
        )
    try:
        for name in ARRAYS:
            read_array(folder, shard, number, name)
    except InputError:
        return None  # will be written again
    return lambda: shard


@contextlib.contextmanager
def _workers(tokenizer, sentences, processes):
    """Yield `submit`, which runs `write_shard` in a worker and returns a getter of its result."""
    if processes == 1:

        def submit(*args):
            shard = write_shard(*args, tokenizer=tokenizer, sentences=sentences)
            return lambda: shard

        yield submit
        return
    # Forked processes would inherit locks that the caller's threads hold.
    pool = concurrent.futures.ProcessPoolExecutor(
        processes,
        multiprocessing.get_context("spawn"),
        _start_worker,
        (tokenizer.to_json(), tokenizer.token(tokenizer.pad_token_id), sentences),
    )
    try:
        yield lambda *args: pool.submit(_write_shard, *args).result
    except concurrent.futures.process.BrokenProcessPool:
        raise InputError(
            "A worker process was killed, perhaps as memory ran out; call again to resume, with "
            f"fewer than processes={processes} to use less memory."
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)


_worker_options = {}


def _start_worker(tokenizer_json, pad_token, sentences):
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # each process has one core
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the first process stops this one
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _worker_options["tokenizer"] = Tokenizer.from_json(tokenizer_json, pad_token)
    _worker_options["sentences"] = sentences


def _end_with_parent():
    """Exit when the parent process ends, as a killed parent cannot stop its children."""
    multiprocessing.connection.wait([multiprocessing.parent_process().sentinel])
    os._exit(1)


def _write_shard(*args):
    return write_shard(*args, **_worker_options)


def _finished(folder, settings, stored, files):
    """Return the manifest of a finished corpus after checking it against the request."""
    manifest = read_manifest(folder)
    _check_settings(folder, manifest["settings"], stored)
    if manifest["files"] != [[str(path), size] for path, size in files]:
        raise InputError(
            f"{folder} holds a corpus of other files, such as {manifest['files'][0][0]}; choose "
            "another folder."
        )
    finished_at = (folder / MANIFEST).stat().st_mtime
    # The modification time can be set back, the inode change time cannot.
    changed = [path for path, _ in files if path.stat().st_ctime >= finished_at]
    if changed:  # or merely copied: the contents decide
        shards = _Texts(files, settings).shards()
        if [shard[1] for shard in shards] != [shard["texts"] for shard in manifest["shards"]]:
            raise InputError(
                f"{folder} holds a corpus of other texts than {changed[0]}, which was written "
                "later; choose another folder."
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
