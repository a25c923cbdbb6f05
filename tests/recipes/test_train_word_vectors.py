"""`train_word_vectors` and `evaluate_word_vectors`, from the shell."""

import pytest

from tests.recipes.refusals import check_refusals, refusals
from tfnlp.baselines import WordVectors
from tfnlp.text import load_tokenizer, train_wordpiece


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    path = tmp_path_factory.mktemp("texts") / "texts.txt"
    lines = [f"{a} {b}" for a in ("cat", "dog") for b in ("purrs", "eats")]
    lines += [f"{a} {b}" for a in ("car", "bus") for b in ("drives", "stops")]
    path.write_text("\n".join(lines * 50) + "\n")
    return path


@pytest.mark.parametrize("method", ["word2vec", "glove"])
def test_vectors_are_trained_and_scored(method, texts, run, tmp_path):
    flags = [f"--input={texts}", f"--method={method}", "--dim=8", "--epochs=30", "--window=1"]
    flags += ["--subsample=0", "--batch_words=100"] if method == "word2vec" else []
    run("train_word_vectors", *flags, f"--output_dir={tmp_path}")
    (tmp_path / "pairs.tsv").write_text("word1\tword2\tscore\ncat\tdog\t9\ncat\tcar\t1\n")
    (tmp_path / "questions.txt").write_text("cat dog car bus\n")
    flags = [f"--similarity={tmp_path}/pairs.tsv", f"--analogies={tmp_path}/questions.txt"]
    flags += ["--nearest=cat", "--k=2", "--odd_one_out=cat,dog,stops"]
    flags += [f"--map={tmp_path}/map.png", "--map_words=8"]
    files = [f"--vectors={tmp_path}/vectors.{ending}" for ending in ("txt", "bin")]
    said, same = (run("evaluate_word_vectors", file, *flags).stdout for file in files)
    assert said == same
    similarity, add, all_add, multiply, all_multiply, nearest, odd = said.splitlines()
    assert similarity.endswith("on 2 of 2")
    assert all_add == add.replace("analogies:", "all analogies:")
    assert all_multiply == multiply.replace("analogies:", "all analogies:")
    assert "3CosAdd" in add and "3CosMul" in multiply and add.endswith("on 1 of 1")
    assert nearest.startswith("cat: dog " if method == "word2vec" else "cat: ")
    assert odd.startswith("odd one out: ")
    assert (tmp_path / "map.png").stat().st_size > 1000


def test_pieces_of_a_tokenizer_are_words(texts, run, tmp_path):
    train_wordpiece(["cat", "dog", "dot"] * 9, 40).save(tmp_path / "tokenizer")
    flags = [f"--input={texts}", f"--tokenizer_dir={tmp_path}/tokenizer", "--dim=4", "--epochs=1"]
    run("train_word_vectors", *flags, f"--output_dir={tmp_path}/vectors")
    vectors = WordVectors.load(tmp_path / "vectors/vectors.bin")
    assert {"cat", "[UNK]"} <= {*vectors.words} and "bus" not in vectors
    tokenizer = load_tokenizer(tmp_path / "tokenizer")
    assert {*vectors.words} <= {*tokenizer.vocabulary}


def test_bad_flags_are_told_without_tensorflow(texts, tmp_path):
    (tmp_path / "words.txt").write_text("word\n")
    (tmp_path / "lone.txt").write_text("film\n" * 9)
    (tmp_path / "vectors.txt").write_text("film 1 2\nriver 2 1\n")
    (tmp_path / "analogies.txt").write_text("a b c d\n")
    (tmp_path / "pairs.tsv").write_text("word1\tword2\tscore\na\tb\t1\n")
    start = [f"--input={texts}", f"--output_dir={tmp_path}/run"]
    cases = {
        "--method=glove --negatives=3": "--negatives=3 has no effect with --method=glove",
        "--min_ngram=4": "--min_ngram=4 has no effect without --max_ngram",
        "--max_ngram=2": "--max_ngram=2 must be at least --min_ngram=3",
    }
    check_refusals("train_word_vectors", start, cases)
    vectors = [f"--vectors={tmp_path}/vectors.txt"]
    cases = {
        "": "Give --similarity, --analogies, --nearest, --odd_one_out or --map",
        "--map=map.txt": "--map=map.txt must end in .png",
        "--similarity=missing.tsv": "missing.tsv does not exist",
    }
    check_refusals("evaluate_word_vectors", vectors, cases)
    # These are told once the files are read, with what is said meanwhile.
    for recipe, flags, message in (
        ("train", "--min_count=999", "No word occurs --min_count=999 times among 8 different"),
        ("train", f"--input={tmp_path}/lone.txt", "No text has two words"),
        ("train", f"--input={tmp_path}/lone.txt --method=glove", "No text has two words"),
        ("evaluate", f"--analogies={tmp_path}/analogies.txt", "No analogy of "),
        ("evaluate", f"--similarity={tmp_path}/pairs.tsv", "0 of 1 pairs have vectors"),
        ("evaluate", "--nearest=a", "'a' has no vector in "),
        ("evaluate", f"--nearest=a --vectors={texts}", "line 1: expected a word and 1 numbers"),
        ("evaluate", f"--nearest=a --vectors={tmp_path}/words.txt", "a word and its numbers"),
    ):
        words = [*(start if recipe == "train" else vectors), *flags.split()]
        (said,) = refusals(f"{recipe}_word_vectors", [words])
        assert "Error: " in said and message in said, said


def test_a_finished_run_is_read_back_and_goes_on(texts, run, refused, tmp_path):
    flags = [f"--input={texts}", "--dim=4", "--batch_words=100", f"--output_dir={tmp_path}"]
    run("train_word_vectors", *flags, "--epochs=1")
    first = (tmp_path / "vectors.txt").read_text()
    run("train_word_vectors", *flags, "--epochs=1")
    assert (tmp_path / "vectors.txt").read_text() == first
    run("train_word_vectors", *flags, "--epochs=2")
    assert (tmp_path / "vectors.txt").read_text() != first
    error = refused("train_word_vectors", *flags, "--epochs=2", "--dim=3")
    assert "there --dim is 4, here 3" in error
    run("train_word_vectors", *flags, "--epochs=1", "--overwrite")
    assert (tmp_path / "vectors.txt").read_text() == first
