"""A prepared corpus: the same bytes however it came about, and what is refused."""

import fcntl
import gzip
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from tests.beam import NO_BEAM
from tfnlp.corpora import CorpusSettings, corpus_preparation, prepare_corpus
from tfnlp.objectives import Corpus, ShardedCorpus, open_corpus
from tfnlp.text import WordPieceTokenizer
from tfnlp.utils.errors import InputError
from tfnlp.utils.files import read_json

ROOT = pathlib.Path(__file__).parents[2]
WORDS = ["a", "fine", "film", "dull", "plot", "영화", "정말", "x", "unbelievable", "zzz"]


def drawn_documents(number, seed=0):
    """Documents of one to four sentences, some of them with unknown words."""
    rng = np.random.default_rng(seed)
    return [
        " ".join(
            " ".join(rng.choice(WORDS, rng.integers(1, 9))) + " ."
            for _ in range(rng.integers(1, 5))
        )
        for _ in range(number)
    ]


def by_lines(shard_mb=0.002, **options):
    return CorpusSettings("lines", shard_mb=shard_mb, **options)


def write_documents(path, number):
    """Write drawn documents, one a line; return the path."""
    path.write_text("\n".join(drawn_documents(number)), encoding="utf-8")
    return path


def content(folder):
    return {path.name: path.read_bytes() for path in pathlib.Path(folder).iterdir()}


def same_corpora(found, expected):
    assert len(found) == len(expected)
    np.testing.assert_array_equal(found.token_counts, expected.token_counts)
    np.testing.assert_array_equal(found.sentence_counts, expected.sentence_counts)
    for i in np.random.default_rng(0).permutation(len(found)):
        ids = found.document(i)
        assert ids.dtype == "int32"
        np.testing.assert_array_equal(ids, expected.document(i))
        np.testing.assert_array_equal(found.sentence_lengths(i), expected.sentence_lengths(i))
        for ours, theirs in zip(found.sentences(i), expected.sentences(i), strict=True):
            np.testing.assert_array_equal(ours, theirs)


def test_a_prepared_corpus_is_the_one_in_memory(tokenizer, tmp_path):
    texts = drawn_documents(300)
    with gzip.open(tmp_path / "a.txt.gz", "wt", encoding="utf-8") as file:
        file.write("\n\n\n".join(text.replace(". ", ".\n") for text in texts[:100]))
    rows = [json.dumps({"text": {"body": text}}) for text in texts[100:200]]
    (tmp_path / "b.jsonl").write_text("\n".join(rows), encoding="utf-8")
    rows = "text.body\tlabel\n" + "".join(f"{text}\t1\n" for text in texts[200:])
    (tmp_path / "c.tsv").write_text(rows, encoding="utf-8")
    paths = [tmp_path / "a.txt.gz", f"{tmp_path}/*.jsonl", tmp_path / "c.tsv"]
    folder = tmp_path / "corpus"
    settings = CorpusSettings(text_column="text.body", shard_mb=0.004)
    manifest = prepare_corpus(paths, tokenizer, folder, settings)
    assert len(manifest["shards"]) > 3 and not list(folder.glob(".*"))
    expected = Corpus.from_documents(
        [[tokenizer.encode([s]).token_ids[1:-1] for s in split(text)] for text in texts]
    )
    for found in (
        ShardedCorpus(folder),
        open_corpus([folder], tokenizer),
        open_corpus(paths, tokenizer, text_column="text.body"),
    ):
        same_corpora(found, expected)
    counts = manifest["counts"]
    unknown = (expected.token_ids == tokenizer.unknown_token_id).sum()
    sizes = (300, expected.sentence_counts.sum(), len(expected.token_ids), unknown)
    names = ("documents", "sentences", "tokens", "unknown")
    assert counts == dict(zip(names, sizes, strict=True)) | {"duplicates": 0, "empty": 0}
    assert unknown > 50
    corpus = ShardedCorpus(folder)
    assert corpus.fingerprint() == ShardedCorpus(str(folder)).fingerprint()
    for index in (-1, 300):
        with pytest.raises(IndexError, match=f"document {index} of 300"):
            corpus.document(index)
    # Once finished, the same call reads nothing; other files or settings are refused.
    before = content(folder)
    assert prepare_corpus(paths, tokenizer, folder, settings) == manifest
    assert content(folder) == before


def split(text):
    return [f"{sentence}." for sentence in text.removesuffix(".").split(". ")]


def test_duplicates_and_documents_without_text_are_left_out_and_counted(tokenizer, tmp_path):
    lines = "a film .||a  film\t.|dull .| |a film.|\u200b|a film .|dull .".replace("|", "\n")
    (tmp_path / "a.txt").write_text(lines, encoding="utf-8")
    (tmp_path / "b.txt").write_text("dull .\nx .\n", encoding="utf-8")
    (tmp_path / "c.txt").write_text("")
    paths = [tmp_path / f"{name}.txt" for name in "abc"]
    for deduplicate, documents, duplicates in ((True, 4, 4), (False, 8, 0)):
        folder = tmp_path / str(deduplicate)
        settings = by_lines(1e-5, deduplicate=deduplicate)
        counts = prepare_corpus(paths, tokenizer, folder, settings)["counts"]
        assert counts["documents"] == documents == len(ShardedCorpus(folder))
        # Of the empty ones two are white space, one a file, and one has no token.
        assert (counts["duplicates"], counts["empty"]) == (duplicates, 4)
    ids = [tokenizer.encode([text]).token_ids[1:-1] for text in ("a film .", "dull .", "x .")]
    corpus = ShardedCorpus(tmp_path / "True")
    found = [corpus.document(i).tolist() for i in range(4)]
    assert found == [ids[0].tolist(), ids[1].tolist(), ids[0].tolist(), ids[2].tolist()]


CALL = """
import sys
from tfnlp.text import WordPieceTokenizer
from tfnlp.corpora import CorpusSettings, prepare_corpus
from tfnlp.utils.shard_work import in_beam
if __name__ == "__main__":
    folder, path, vocabulary, shard_mb, place = sys.argv[1:]
    tokenizer = WordPieceTokenizer(open(vocabulary, encoding="utf-8").read().split("\\n"))
    settings = CorpusSettings("lines", deduplicate=True, shard_mb=float(shard_mb))
    options = ["--direct_num_workers=2", "--direct_running_mode=multi_processing"]
    work = in_beam("DirectRunner", options) if place == "beam" else None
    prepare_corpus([path], tokenizer, folder, settings, 2, map_shards=work)
    assert place == "beam" or not {"tensorflow", "keras"} & sys.modules.keys()
"""


@pytest.fixture
def preparation(tokenizer, tmp_path):
    """Starts a process that prepares a corpus: `preparation(folder, shard_mb, place)`.

    It gives the process, and the corpus that this process prepares of the same files.
    """
    path, vocabulary = write_documents(tmp_path / "a.txt", 12_000), tmp_path / "vocabulary"
    vocabulary.write_text("\n".join(tokenizer.tokens_by_id()), encoding="utf-8")
    (tmp_path / "call.py").write_text(CALL)

    def start(folder, shard_mb, place):
        words = [folder, path, vocabulary, str(shard_mb), place]
        return subprocess.Popen(
            [sys.executable, tmp_path / "call.py", *words],
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            process_group=0,
        )

    def whole(folder, shard_mb):
        own = WordPieceTokenizer(tokenizer.tokens_by_id())
        return prepare_corpus([path], own, folder, by_lines(shard_mb, deduplicate=True))

    return start, whole


def killed_after(process, folder, shards):
    """Kill a preparation once so many shards are there; return the files of those that are."""
    while len(list(folder.glob("shard-*.json"))) < shards and process.poll() is None:
        time.sleep(0.002)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    there = [*folder.glob("shard-*.json")]
    assert len(there) >= shards and not (folder / "manifest.json").exists()
    return there


def finish(process):
    _, errors = process.communicate()
    assert process.returncode == 0, errors


def test_one_process_or_two_killed_or_not_give_the_same_bytes(preparation, tmp_path):
    start, whole = preparation
    manifest = whole(tmp_path / "one", 0.02)
    assert len(manifest["shards"]) > 30 and manifest["counts"]["duplicates"] > 300
    folder, seen = tmp_path / "two", 0
    for due in (1, 6, 14):
        there = len(killed_after(start(folder, 0.02, "processes"), folder, due))
        assert seen < there < 30, "killed too late"
        seen = there
        with pytest.raises(InputError, match="holds an unfinished corpus"):
            ShardedCorpus(folder)
    (folder / ".shard-00003.ids.npy.0123abcd").write_bytes(b"left by a kill")
    finish(start(folder, 0.02, "processes"))
    assert content(folder) == content(tmp_path / "one")


def test_a_beam_pipeline_killed_or_not_gives_the_same_bytes(preparation, tmp_path):
    pytest.importorskip("apache_beam", reason=NO_BEAM)
    start, whole = preparation
    assert len(whole(tmp_path / "one", 0.005)["shards"]) > 120
    folder = tmp_path / "two"
    kept = killed_after(start(folder, 0.005, "beam"), folder, 10)
    assert len(kept) < 120
    arrays = [path.with_suffix(".ids.npy") for path in kept]
    times = [path.stat().st_mtime_ns for path in arrays]
    finish(start(folder, 0.005, "beam"))
    assert [path.stat().st_mtime_ns for path in arrays] == times  # kept, not made again
    assert content(folder) == content(tmp_path / "one")


def test_a_preparation_resumes_at_the_missing_shards(tokenizer, tmp_path, monkeypatch):
    call = ([write_documents(tmp_path / "a.txt", 200)], tokenizer)
    prepare_corpus(*call, tmp_path / "whole", by_lines())
    written, write_shard = [], corpus_preparation.write_shard

    def failing(folder, number, *args, **options):
        if number == 4 and len(written) == 4:
            raise KeyboardInterrupt
        written.append(number)
        return write_shard(folder, number, *args, **options)

    monkeypatch.setattr(corpus_preparation, "write_shard", failing)
    folder = tmp_path / "broken"
    with pytest.raises(KeyboardInterrupt):
        prepare_corpus(*call, folder, by_lines())
    # A shard that is cut, or has another's index, is made again.
    os.truncate(folder / "shard-00001.ids.npy", 50)
    shutil.copy(folder / "shard-00000.documents.npy", folder / "shard-00002.documents.npy")
    prepare_corpus(*call, folder, by_lines())
    assert written[:4] == [0, 1, 2, 3] and written[4:7] == [1, 2, 4]
    assert len(written) == 6 + len(read_json(folder / "manifest.json")["shards"]) - 4
    assert content(folder) == content(tmp_path / "whole")


def test_bad_corpora_and_settings_are_refused(tokenizer, tmp_path, monkeypatch):
    text = "\n".join(drawn_documents(60))
    path, folder = tmp_path / "a.txt", tmp_path / "corpus"
    path.write_text(text, encoding="utf-8")
    options = {"documents": "lines", "shard_mb": 0.002}

    def refused(said, paths=(path,), tokenizer=tokenizer, folder=folder, **other):
        with pytest.raises(InputError, match=said):
            prepare_corpus(paths, tokenizer, folder, CorpusSettings(**options | other))

    empty, latin = tmp_path / "empty.txt", tmp_path / "latin.txt"
    empty.write_text("\n \n")
    latin.write_bytes(text.encode() + "\ncafé".encode("latin-1"))
    refused("none.txt does not exist", [path, tmp_path / "none.txt"])
    refused("documents=words", documents="words")
    refused("shard_mb=0", shard_mb=0)
    assert not folder.exists()
    refused("empty.txt and the like hold no", [empty], folder=tmp_path / "e")
    refused(r"latin\.txt, from byte 40\d\d, line \d: byte 4 of the line is", [latin])
    # A text that is mended goes on from there.
    prepare_corpus([path], tokenizer, folder, CorpusSettings(**options))
    other = WordPieceTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a"])
    refused("corpus holds a corpus of another tokenizer", tokenizer=other)
    refused("holds a corpus of sentences=split, here sentences=lines", sentences="lines")
    refused("holds a corpus of other files, such as .*a.txt", [empty])
    refused("holds other files and no corpus", folder=tmp_path)
    refused("a.txt could not be created", folder=path)
    for paths, tongue, said in (
        (folder, other, "corpus was prepared with another tokenizer"),
        ([folder, path], tokenizer, "is a folder; give prepared folders alone, or text"),
        (tmp_path, tokenizer, r"holds no manifest\.json"),
        (empty, tokenizer, r"empty\.txt has no token"),
    ):
        with pytest.raises(InputError, match=said):
            open_corpus(paths, tongue)
    # A second preparation at the same time.
    lock = os.open(folder, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    refused("corpus is being prepared by another process; wait, or")
    os.close(lock)
    # A text that changed behind the back of an unfinished corpus.
    folder = tmp_path / "changed"
    with monkeypatch.context() as patch:
        patch.setattr(corpus_preparation, "make_manifest", None)
        with pytest.raises(TypeError):
            prepare_corpus([path], tokenizer, folder, CorpusSettings(**options))
    path.write_text(text.replace("film", "plot", 1), encoding="utf-8")
    refused("shard-00000.ids.npy was written from other texts; give", folder=folder)


def test_a_shard_without_other_duplicates_of_the_same_number_is_refused(
    tokenizer, tmp_path, monkeypatch
):
    paths, folder = [tmp_path / "a.txt", tmp_path / "b.txt"], tmp_path / "corpus"
    paths[1].write_text("a film .\ndull .\n")
    call = paths, tokenizer, folder, by_lines(25e-6, deduplicate=True)
    paths[0].write_text("a film .\nx x x x x x x x\n")
    with monkeypatch.context() as patch:
        patch.setattr(corpus_preparation, "make_manifest", None)
        with pytest.raises(TypeError):
            prepare_corpus(*call)
    # The first shard is not there yet when its file changes.
    (folder / "shard-00000.json").unlink()
    paths[0].write_text("dull .\nx x x x x x x x x\n")
    with pytest.raises(InputError, match=r"shard-00001\.ids\.npy was written from other texts"):
        prepare_corpus(*call)


def test_files_edited_later_are_another_corpus(tokenizer, tmp_path):
    path, given = tmp_path / "a.txt", (tokenizer, tmp_path / "corpus")
    path.write_text("a fine film\n\na dull plot\n")
    manifest = prepare_corpus([path], *given)
    path.write_text("a fine film\n\na dull film\n")  # of the same size
    long_ago = (tmp_path / "corpus" / "manifest.json").stat().st_mtime - 100
    future = long_ago + 10_000  # as a clock that was set back shows the corpus
    os.utime(tmp_path / "corpus" / "manifest.json", (future, future))
    for _ in range(2):
        with pytest.raises(InputError, match=r"other texts than .*a\.txt and the like have"):
            prepare_corpus([path], *given)
        os.utime(path, (long_ago, long_ago))  # as an editor that keeps the date leaves it
    path.write_text("a fine film\n\na dull plot\n")
    assert prepare_corpus([path], *given) == manifest


def test_a_tokenizer_of_another_language_is_warned_of(tokenizer, tmp_path, caplog):
    tongue, film = tmp_path / "tongue.txt", tmp_path / "film.txt"
    tongue.write_text("ЖЖЖ ЩЩЩ\n" * 30)
    film.write_text("a fine film\n" * 30)
    open_corpus(film, tokenizer, "lines")
    assert "unknown" not in caplog.text
    prepare_corpus([tongue], tokenizer, tmp_path / "corpus", CorpusSettings("lines"))
    opened = [open_corpus(path, tokenizer, "lines") for path in (tongue, tmp_path / "corpus")]
    assert caplog.text.count("100.0 % of the tokens are unknown") == 2
    assert opened[1].unknown_share == 1


def test_an_empty_file_does_not_stop_the_others(tokenizer, tmp_path, caplog):
    (tmp_path / "a.txt").write_text("a fine film\n")
    (tmp_path / "b.txt").write_text("")
    for name, text in (("c.txt.gz", b""), ("d.jsonl.gz", b""), ("e.txt.gz", b"a dull plot\n")):
        with gzip.open(tmp_path / name, "wb") as file:
            file.write(text)
    counts = prepare_corpus([f"{tmp_path}/*.*"], tokenizer, tmp_path / "corpus")["counts"]
    assert (counts["documents"], counts["empty"]) == (2, 3)
    assert all(f"/{name} is empty." in caplog.text for name in ("b.txt", "c.txt.gz", "d.jsonl.gz"))
    # One that is cut is no empty one.
    whole = (tmp_path / "e.txt.gz").read_bytes()
    (tmp_path / "f.txt.gz").write_bytes(whole[:12])
    with pytest.raises(InputError, match=r"f\.txt\.gz: not a whole gzip file"):
        prepare_corpus([tmp_path / "f.txt.gz"], tokenizer, tmp_path / "cut")
