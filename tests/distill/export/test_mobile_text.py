"""Kotlin of docs/android and Swift of docs/swift against the rows and answers of Python."""

import itertools
import json
import os
import pathlib
import random
import shutil
import subprocess
import unicodedata

import pytest
from tokenizers.normalizers import StripAccents

from benchmarks.hostile_texts import hostile_strings
from distill.export.character_rules import CODE_POINTS, normalized
from distill.export.golden_outputs import write_golden
from distill.runtime import load_runner
from tests.distill.export.phone_files import (
    GOLDEN,
    PIECES,
    ROOT,
    TABLES,
    UNIGRAM_TEXTS,
    RandomModel,
    character_table,
    unigram_tokenizer,
    write_golden_files,
)
from tests.text.family_tokenizers import tokenizer_of
from tfnlp.pipelines import Inputs
from tfnlp.tasks.kinds import ANSWERER, CLASSIFIER, EMBEDDER, TAGGER
from tfnlp.text import WordPieceTokenizer
from tfnlp.text.tokenizers.unigram import train_unigram

KOTLIN, SWIFT = ROOT / "docs/android/text/src", ROOT / "docs/swift"
# Debian's libandroid-json-org-java; Gradle fetches its own, and Android has it.
JSON_JAR = pathlib.Path("/usr/share/java/json.jar")
WORDS = [
    *("a", "fine", "film", "films", "dull", "unbelievable", "not", "the", "(a)", "a.", ":)", "x!"),
    *("영화", "정말", "좋다.", "지루하다", "zzz", "🙂", "x" * 101, "plot,", "unx", "(((((((((((a"),
]
ODD = [
    *("", " ", "A FINE Film", "Straße ΣΑΣ İx", "cafe\u0301 é Å", "a\u200bfilm \ufeffx"),
    *("x\x00a\x07", "$x+x^x`x|x~x<x>x=x", "a\tfilm\u00a0x\u3000a\u2028x\x1cx", "字film、字"),
    *("ＡＢＣ x² ½ ｶﾞ", "🙂🙂 film", "a\ufffdfilm \ue000", "¿x? «a» _x_ a-x"),
    *("정말 좋다 film", "x " * 40, "ſ K Ω ﬁlm"),
]
BLOCKS = [(0, 0x250), (0x300, 0x370), (0x370, 0x600), (0x600, 0x1200), (0xAC00, 0xD7A4)]
BLOCKS += [(0x1E00, 0x3400), (0x4E00, 0x4F00), (0xD800, 0xE100), (0xF900, 0x10000)]
BLOCKS += [(0x10000, 0x1F000), (0x1F300, 0x1FA00), (0x20000, 0x20100), (0xE0000, 0xE0200)]
# The ways in which WordPiece normalises a text.
NORMALIZERS = [
    {},
    {"strip_accents": False},
    {"lowercase": False, "strip_accents": False, "split_cjk": False},
    {"lowercase": False, "strip_accents": True},
]
with_each_normalizer = pytest.mark.parametrize("options", NORMALIZERS)


def sentences(seed, most):
    rng = random.Random(seed)
    return [" ".join(rng.choices(WORDS, k=rng.randrange(most + 1))) for _ in range(12)]


def hostile(count, seed=0):
    """Return texts of any code points, lone surrogates among them, in words and between."""
    rng = random.Random(seed)

    def letter():
        if rng.random() < 0.3:
            return rng.choice("aBfilm.x \u0301ΣİßK")
        return chr(rng.randrange(*rng.choice(BLOCKS)))

    texts = ["".join(letter() for _ in range(rng.randrange(40))) for _ in range(count)]
    # Two halves of a pair are one code point in JavaScript.
    return [t.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass") for t in texts]


def spelled(texts, options):
    """Return a tokenizer that knows each character of some texts, so that none hides in [UNK]."""
    first = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "film", "##lm"]
    normalizer = WordPieceTokenizer(first, **options)._engine.normalizer
    whole = "".join(texts).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    letters = sorted({c for c in normalizer.normalize_str(whole) if not c.isspace()})
    return WordPieceTokenizer([*first, *letters, *(f"##{c}" for c in letters)], **options)


def spelled_unigram(texts, character_map=None):
    """Return a Unigram tokenizer that knows most characters of texts, alone and in pairs."""
    normalizer = unigram_tokenizer(PIECES, character_map)._engine.normalizer
    whole = "".join(normalizer.normalize_str(text) for text in texts).replace(" ", "▁")
    known = {c for i, c in enumerate(sorted({*whole})) if i % 9}
    pairs = {a + b for a, b in itertools.pairwise(whole) if {a, b} <= known and b != "▁"}
    return unigram_tokenizer(list(dict.fromkeys([*PIECES, *sorted(known | pairs)])), character_map)


def whole_characters(texts):
    """Return texts with U+FFFD for lone surrogates, which no JSON file in UTF-8 holds."""
    return [t.encode("utf-16", "surrogatepass").decode("utf-16", "replace") for t in texts]


def late_marks():
    """Return marks later than the Unicode of the engine, to delete; Java 17 lacks those of 14."""
    marks = {c for c in map(chr, CODE_POINTS) if unicodedata.category(c).startswith("M")}
    return {ord(c): None for c in marks - normalized(StripAccents(), [*marks]).keys()}


def golden_files(folder, files, tokenizer):
    """Write golden files of odd texts: ids of each normaliser, and tags and answers in windows."""
    wild = [text[:500] for text in (*hostile(150), *hostile_strings(1000))]
    texts = [*ODD, *sentences(0, 6), *whole_characters(wild)]
    for place, options in enumerate(NORMALIZERS):
        model = RandomModel(CLASSIFIER, spelled(texts, options), 24, ["bad", "good"])
        model.write(folder, f"singles_{place}", Inputs(texts))
        model.write(folder, f"pairs_{place}", Inputs(texts, texts[::-1]))
    texts = [*sentences(1, 40), *ODD]
    for unit in ("word", "character"):
        tags, settings = ["O", "B-x", "I-x"], {"unit": unit, "stride": 4}
        RandomModel(TAGGER, tokenizer, 24, tags, settings).write(folder, unit, Inputs(texts))
    contexts = [*sentences(2, 60), "", "cafe\u0301 film 🙂 a fine film"]
    inputs = Inputs(["what film ?", "unbelievable zzz cafe\u0301"] * 7, contexts)
    for nulls in (False, True):
        settings = {"null_answers": nulls, "stride": 5, "max_question_length": 5}
        model = RandomModel(ANSWERER, tokenizer, 24, settings=settings)
        model.write(folder, f"answers_{nulls}", inputs)
    wild = [text[:120].translate(late_marks()) for text in wild[::3]]
    wild = whole_characters([*UNIGRAM_TEXTS, *sentences(3, 40), *wild])
    character_map = train_unigram(WORDS, 90, "xlm-roberta").character_map
    for name, options in (("nfkc", {}), ("charsmap", {"character_map": character_map})):
        unigram = spelled_unigram(wild, **options)
        model = RandomModel(TAGGER, unigram, 24, tags, {"unit": "character", "stride": 4})
        model.write(folder, f"characters_{name}", Inputs(wild))
        model = RandomModel(CLASSIFIER, unigram, 24, ["bad", "good"])
        model.write(folder, f"pairs_{name}", Inputs(wild, wild[::-1]))
        RandomModel(ANSWERER, unigram, 24, settings=settings).write(folder, f"ask_{name}", inputs)
    # A file with a model before its settings.
    shutil.copyfile(files["tagger"], folder / "real.tflite")
    write_golden(folder / "real.json", load_runner(files["tagger"]), Inputs(texts))


@pytest.fixture(scope="module")
def goldens(files, tokenizer, tmp_path_factory):
    folder = tmp_path_factory.mktemp("golden")
    golden_files(folder, files, tokenizer)
    return folder


@pytest.mark.skipif(
    not (shutil.which("kotlinc") and JSON_JAR.exists()),
    reason=f"needs kotlinc on the PATH, and {JSON_JAR}",
)
def test_kotlin_reads_and_answers_as_python(goldens, tmp_path):
    sources = [KOTLIN / "main/kotlin", KOTLIN / "test/kotlin/tfnlp/Golden.kt"]
    jar = tmp_path / "text.jar"
    command = ["kotlinc", *sources, "-cp", JSON_JAR, "-include-runtime", "-d", jar]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    places = ":".join(map(str, (jar, JSON_JAR, KOTLIN / "main/resources")))
    java = ["java", "-Dfile.encoding=UTF-8", "-cp", places, "tfnlp.GoldenKt"]

    def run(folder):
        return subprocess.run([*java, folder], check=False, capture_output=True, text=True)

    for folder in (GOLDEN, goldens):
        done = run(folder)
        assert (done.returncode, done.stdout) == (0, ""), done.stderr
    for family, part in (("roberta", "the model BPE"), ("deberta-v2", "a Replace of")):
        RandomModel(EMBEDDER, tokenizer_of(family)).write(tmp_path / family, "other", Inputs([]))
        done = run(tmp_path / family)
        assert done.returncode == 1 and f"tokenizer.json has {part}" in done.stderr


@pytest.mark.skipif(shutil.which("swift") is None, reason="needs swift on the PATH")
def test_swift_reads_and_answers_as_python(goldens, tmp_path):
    build = ["swift", "test", "--package-path", SWIFT, "--scratch-path", tmp_path]
    environment = {"GOLDEN": str(goldens)}
    done = subprocess.run(
        build, check=False, capture_output=True, text=True, env=os.environ | environment
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_files_in_the_repository_are_those_of_python(tmp_path):
    text = character_table()
    assert all(table.read_text("utf-8") == text for table in TABLES)
    write_golden_files(tmp_path)
    kept, written = (
        {path.name: path.read_bytes() for path in folder.iterdir()}
        for folder in (GOLDEN, tmp_path)
    )
    assert kept == written, "write them anew: python -m tests.distill.export.phone_files"


def test_golden_files_have_windows_cuts_and_questions_without_an_answer(tmp_path):
    write_golden_files(tmp_path)
    inputs = {
        path.stem: json.loads(path.read_text())["inputs"] for path in tmp_path.glob("*.json")
    }
    for name in ("words", "characters", "answers"):
        assert max(len(one["rows"]) for one in inputs[name]) > 1
    assert {one["answer"]["truncated"] for one in inputs["one_label"]} == {True, False}
    assert {bool(one["answer"]["text"]) for one in inputs["answers"]} == {True, False}
    assert len({*map(len, (one["answer"]["labels"] for one in inputs["several_labels"]))}) > 1
    assert {"O", "B-x", "I-x"} == {tag for one in inputs["words"] for tag in one["answer"]["tags"]}
