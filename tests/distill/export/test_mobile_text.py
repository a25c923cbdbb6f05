"""The Kotlin of docs/mobile_text.md, compiled, against what the runtime reads and answers."""

import base64
import json
import pathlib
import random
import re
import shutil
import subprocess

import pytest

from distill.export.golden_outputs import write_golden
from distill.runtime import load_runner
from tfnlp.pipelines import Inputs
from tfnlp.text import WordPieceTokenizer
from tfnlp.text.tokenizers.tokenizer import MAX_QUESTION_LENGTH

ROOT = pathlib.Path(__file__).parents[3]
DOCUMENT = (ROOT / "docs" / "mobile_text.md").read_text("utf-8")
WORDS = [
    *("a", "fine", "film", "films", "dull", "unbelievable", "not", "the", "(a)", "a.", ":)", "x!"),
    *("영화", "정말", "좋다.", "지루하다", "zzz", "🙂", "x" * 101, "plot,", "unx"),
]
ODD = [
    *("", " ", "A FINE Film", "Straße ΣΑΣ İx", "cafe\u0301 é Å", "a\u200bfilm \ufeffx"),
    *("x\x00a\x07", "$x+x^x`x|x~x<x>x=x", "a\tfilm\u00a0x\u3000a\u2028x", "字film、字"),
    *("ＡＢＣ x² ½ ｶﾞ", "🙂🙂 film", "a\ufffdfilm \ue000", "¿x? «a» _x_ a-x"),
    *("정말 좋다 film", "x " * 40, "ſ K Ω ﬁlm"),
]


def sentences(seed, most):
    rng = random.Random(seed)
    return [" ".join(rng.choices(WORDS, k=rng.randrange(most + 1))) for _ in range(12)]


@pytest.fixture(scope="module")
def run_page(tmp_path_factory):
    """Runs the page's code: (tokenizer, longest row, lines) to the lines that it prints."""
    missing = [name for name in ("kotlinc", "java") if shutil.which(name) is None]
    if missing:
        pytest.skip(f"no {missing[0]} on the PATH; on Debian: apt-get install kotlin")
    folder = tmp_path_factory.mktemp("kotlin")
    page = "\n".join(re.findall(r"```kotlin\n(.*?)```", DOCUMENT, re.S))
    (folder / "Page.kt").write_text(page, "utf-8")
    harness = pathlib.Path(__file__).with_name("Golden.kt")
    command = ["kotlinc", folder / "Page.kt", harness, "-include-runtime", "-d", "page.jar"]
    done = subprocess.run(command, check=False, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr

    def run(tokenizer, longest, lines):
        settings = tokenizer.settings()
        strips = settings["strip_accents"]
        flags = [
            settings["do_lower_case"],
            settings["do_lower_case"] if strips is None else strips,
            settings["tokenize_chinese_chars"],
        ]
        header = ["\t".join(str(flag).lower() for flag in flags)]
        header += [encoded(tokenizer.vocabulary), str(longest)]
        done = subprocess.run(
            ["java", "-Dfile.encoding=UTF-8", "-cp", "page.jar", "GoldenKt"],
            cwd=folder,
            input="\n".join([*header, *lines]) + "\n",
            check=True,
            capture_output=True,
            text=True,
        )
        printed = done.stdout.splitlines()
        assert len(printed) == len(lines)
        return printed

    return run


def encoded(texts):
    return " ".join(base64.b64encode(text.encode()).decode() for text in texts)


def shown(row):
    return ",".join(" ".join(map(str, row[name])) for name in ("ids", "segment_ids"))


def matrix(rows):
    return ";".join(" ".join(map(repr, row)) for row in rows)


# For each way in which WordPiece normalises a text.
with_each_normalizer = pytest.mark.parametrize(
    "options",
    [
        {},
        {"strip_accents": False},
        {"lowercase": False, "strip_accents": False, "split_cjk": False},
        {"lowercase": False, "strip_accents": True},
    ],
)


def golden(path, runner, inputs):
    write_golden(path, runner, inputs)
    return json.loads(path.read_text("utf-8"))


@with_each_normalizer
def test_texts_have_the_tokenizers_ids(options, tokenizer, run_page):
    texts = [*ODD, *sentences(0, 6)]
    # Each character by itself too, so that no difference hides in [UNK].
    plain = WordPieceTokenizer([*tokenizer.vocabulary], **options)._engine.normalizer
    letters = {c for text in texts for c in plain.normalize_str(text) if not c.isspace()}
    vocabulary = [*tokenizer.vocabulary, *sorted(letters - {*tokenizer.vocabulary})]
    vocabulary += [f"##{c}" for c in sorted(letters) if f"##{c}" not in vocabulary]
    wordpiece = WordPieceTokenizer(vocabulary, **options)
    lines = [f"single\t{encoded([text])}" for text in texts]
    expected = list(wordpiece.encode(texts, max_length=20))
    pairs = [*zip(texts, reversed(texts), strict=True), ("x " * 30, "a"), ("a", "x " * 30)]
    pairs += [("x " * 30, "a " * 30), ("x " * 9, "a " * 30), ("x " * 30, "a " * 8)]
    lines += [f"pair\t{encoded([a])}\t{encoded([b])}" for a, b in pairs]
    expected += wordpiece.encode(*map(list, zip(*pairs, strict=True)), max_length=20)
    printed = run_page(wordpiece, 20, lines)
    for line, text, encoding in zip(printed, [*texts, *pairs], expected, strict=True):
        row = {"ids": encoding.token_ids, "segment_ids": encoding.segment_ids}
        assert line == shown(row), text


@pytest.mark.parametrize("unit", ["words", "characters"])
def test_tags_are_the_runtimes(unit, files, tokenizer, run_page, tmp_path):
    runner = load_runner(files["tagger"])
    if unit == "characters":
        runner.settings = {"unit": "character", "stride": 4}
    inputs = Inputs([*sentences(1, 40), *ODD[2:5], *ODD[7:]])
    content = golden(tmp_path / "golden.json", runner, inputs)
    words = content["settings"].get("words", {})
    parts = [encoded(words.get(name, [])) for name in ("prefixes", "suffixes", "whole")]
    stride = str(content["settings"].get("stride", content["max_length"] // 4))
    lines = [
        "\t".join(
            [unit, encoded([given["text"]]), stride, encoded(content["labels"]), *parts]
            + [matrix(row["outputs"]["probability"]) for row in given["rows"]]
        )
        for given in content["inputs"]
    ]
    printed = run_page(tokenizer, content["max_length"], lines)
    windows = 0
    for line, given in zip(printed, content["inputs"], strict=True):
        rows, tags = line.split("\t")
        assert rows == ";".join(map(shown, given["rows"])), given["text"]
        assert tags.split() == given["answer"]["tags"], given["text"]
        windows += len(given["rows"]) > 1
    assert windows > 3


@pytest.mark.parametrize("nulls", [False, True])
def test_answers_are_the_runtimes(nulls, files, tokenizer, run_page, tmp_path):
    runner = load_runner(files["answerer"])
    runner.settings = runner.settings | {"null_answers": nulls, "stride": 5}
    contexts = [*sentences(2, 60), "", "cafe\u0301 film 🙂 a fine film"]
    inputs = Inputs(["what film ?", "unbelievable zzz x"] * 7, contexts)
    content = golden(tmp_path / "golden.json", runner, inputs)
    settings = content["settings"]
    how = [settings["stride"], settings.get("max_question_length", MAX_QUESTION_LENGTH)]
    lines = [
        "\t".join(
            ["answer", encoded([given["text"]]), encoded([given["second"]]), *map(str, how)]
            + [str(nulls).lower()]
            + [matrix(row["outputs"][name] for name in NAMES) for row in given["rows"]]
        )
        for given in content["inputs"]
    ]
    printed = run_page(tokenizer, content["max_length"], lines)
    empty = windows = 0
    for line, given in zip(printed, content["inputs"], strict=True):
        rows, answer = line.split("\t")
        assert rows == ";".join(map(shown, given["rows"]))
        start, end, score, *text = answer.split(" ")
        expected = given["answer"]
        assert (int(start), int(end)) == (expected["start"], expected["end"])
        assert base64.b64decode("".join(text)).decode() == expected["text"]
        assert float(score) == pytest.approx(expected["score"], abs=1e-5)
        empty += not expected["text"]
        windows += len(given["rows"]) > 1
    assert windows > 3 and (1 < empty < 12 if nulls else empty < 3)


NAMES = ("start_logits", "end_logits")
