"""Files of docs/android and docs/swift that Python writes.

A table of code points, and golden files of models whose outputs are random numbers.
`python -m tests.distill.export.phone_files` writes them anew.
"""

import dataclasses
import itertools
import json
import pathlib
import shutil
import textwrap
import unicodedata

import numpy as np
from tokenizers import normalizers, pre_tokenizers

from distill.export.character_rules import (
    CODE_POINTS,
    SEPARATOR,
    compile_rules,
    normalized,
    split_characters,
)
from distill.export.golden_outputs import write_golden
from distill.export.metadata import tokenizer_files
from distill.runtime.associated_files import LABELS_FILE, add_files
from tfnlp.pipelines.inputs import Inputs
from tfnlp.pipelines.pipeline import pipeline_of
from tfnlp.tasks.kinds import ANSWERER, CLASSIFIER, EMBEDDER, MULTI_LABEL_CLASSIFIER, TAGGER
from tfnlp.text import UnigramTokenizer, WordPieceTokenizer
from tfnlp.text.tokenizers.wordpiece import bert_normalizer

ROOT = pathlib.Path(__file__).parents[3]
TABLES = (
    ROOT / "docs/android/text/src/main/resources/tfnlp/characters.txt",
    ROOT / "docs/swift/Sources/TextModels/characters.txt",
)
GOLDEN = ROOT / "docs/android/text/src/test/resources/golden"
SURROGATES = range(0xD800, 0xE000)
VOCABULARY = [
    *(
        "[PAD]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "a",
        "fine",
        "film",
        "the",
        "is",
        "dull",
        ".",
        ",",
        "!",
        ":",
        ")",
    ),
    *("x", "##x", "##s", "cafe", "不", "好", "정말", "좋다", "ᄌ", "##ᅩ", "##ᇂ"),
]
PROMPTS = {"prompts": {"query": "x: "}, "default_prompt": "query"}
AFFIXES = {"prefixes": ["("], "suffixes": [".", ")", "!"], "whole": ["a.", ":)"]}
TEXTS = [
    "A fine film!",
    "(the café is dull.) 좋다 :)",
    "films, films, the fine films: a. dull x xxx film is a fine film 😀 film",
    "好film不好\u200b\u3000x",
    "",
]
# Pieces of a Unigram tokenizer.
PIECES = [
    *("▁", "a", "fi", "lm", "▁film", "▁a", "▁영화", "▁정말", "좋", "다", "ㅋ", "ㅋㅋ", "가", "각"),
    *("kg", "パ", "ガ", "é", ".", "😀", "s", "▁s"),
]
UNIGRAM_TEXTS = [
    "정말 정말 좋은 영화 ㅋㅋㅋㅋㅋ 😀 a film.",
    "ﬁlm ㎏ ｶﾞﾊﾟ e\u0301 \u1100\u1161\u11a8 가\u11a8 각",
    "a\ufffda\u200ba\u3000film   film\r\na\x01s",
    "<s>film </s> \u3000<mask>s <unk> ▁",
    "  film ",
    "",
]
# Rules by Unicode, where the released models have a character map.
NFKC_RULES = {
    "normalizer": {
        "type": "Sequence",
        "normalizers": [
            {"type": "Nmt"},
            {"type": "NFKC"},
            {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "},
        ],
    },
    "pre_tokenizer": {
        "type": "Metaspace",
        "replacement": "▁",
        "prepend_scheme": "always",
        "split": True,
    },
}
CHARACTERS = {
    "ﬁ": "fi",
    "㎏": "kg",
    "ｶ": "カ",
    "\u3000": " ",
    "\r": " ",
    "e\u0301": "é",
    "\x01": "",
}
HANGUL = range(0xAC00, 0xD7A4)  # of which the table says nothing: three letters by arithmetic


def character_table():
    """Return the text of characters.txt: a kind of rule and its code points on each line."""
    plain = normalized(bert_normalizer(False, False, False))
    changes = {
        name: {
            ord(c): reading
            for c, reading in normalized(bert_normalizer(*options)).items()
            if reading != plain.get(c)
        }
        for name, options in (
            ("ideograph", (False, False, True)),
            ("decomposed", (False, True, False)),
            ("lower", (True, False, False)),
        )
    }
    parts = {p: reading for p, reading in changes["decomposed"].items() if p not in HANGUL}
    characters = [c for c in map(chr, CODE_POINTS) if c not in plain and c != SEPARATOR]
    sets = {
        "removed": {*SURROGATES, *(ord(c) for c, reading in plain.items() if not reading)},
        "space": {0x20, *(ord(c) for c, reading in plain.items() if reading)},
        "ideograph": changes["ideograph"],
        "punctuation": map(ord, split_characters(pre_tokenizers.BertPreTokenizer(), characters)),
        "mark": (point for point, reading in parts.items() if not reading),
        **cluster_sets(),
        **composition_sets(),
    }
    lines = ["# Code points as tokenizers reads them, of tests/distill/export/phone_files.py."]
    for name, points in sets.items():
        lines += _lines(name, _ranges(sorted(points)))
    readings = {"decomposed": parts, "lower": changes["lower"], "class": combining_classes()}
    for name, texts in readings.items():
        lines += _lines(name, _readings({p: text for p, text in texts.items() if text}))
    return "\n".join(lines) + "\n"


def composition_sets():
    """Return the code points that NFKD changes and those that NFC composes, without Hangul."""
    changed, decomposed, kept = (
        {ord(c) for c in normalized(form())}
        for form in (normalizers.NFKD, normalizers.NFD, normalizers.NFC)
    )
    return {
        "compatible": changed.difference(HANGUL),
        "composed": (decomposed - kept).difference(HANGUL),
    }


def combining_classes():
    """Return {mark: its class as a character}, of the marks that the engine sorts by classes."""
    last = "\u0345"  # the mark of the highest class
    marks = [c for c in map(chr, CODE_POINTS) if unicodedata.combining(c)]
    sorted_marks = normalized(normalizers.NFD(), [last + c for c in marks])
    marks = [pair[1] for pair, text in sorted_marks.items() if text == pair[::-1]]
    return {ord(c): chr(unicodedata.combining(c)) for c in (last, *marks)}


def cluster_sets():
    """Return the code points that continue or begin grapheme clusters, and those that part them.

    The engine looks up a whole cluster of less than 6 bytes, by the shortest key that begins it.
    """
    accented, others = "a\u0301", [chr(p) for p in CODE_POINTS if chr(p) not in (SEPARATOR, "a")]
    joined = _looked_up("a", ["a" + c for c in others])
    parted = _looked_up(accented, [c + accented for c in others])
    controls = [c for c in others if unicodedata.category(c) in ("Cc", "Cf", "Cn", "Zl", "Zp")]
    controls = [c for c in controls if "\0" < c < "\ufffe"]
    broken = normalized(
        normalizers.Precompiled(compile_rules(dict.fromkeys(controls, "b"))),
        [c + "\u0301" for c in controls],
    )
    extending = {ord(text[1]) for text, reading in joined.items() if reading == "b"}
    return {
        "extend": extending,
        "prepend": (ord(c) for c in others if c + accented not in parted),
        "control": {ord(t[0]) for t, reading in broken.items() if reading != "b"} - extending,
    }


def _looked_up(key, texts):
    """Return texts as a character map with one key reads them."""
    return normalized(normalizers.Precompiled(compile_rules({key: "b"})), texts)


def _lines(name, entries):
    start = f"{name} "
    options = {"initial_indent": start, "subsequent_indent": start, "break_on_hyphens": False}
    return textwrap.wrap(" ".join(entries), 100, **options)


def _ranges(points):
    """Yield the runs of an ascending list, such as 9-A."""
    for _, run in itertools.groupby(enumerate(points), lambda pair: pair[1] - pair[0]):
        numbers = [point for _, point in run]
        yield f"{numbers[0]:X}" + (f"-{numbers[-1]:X}" if len(numbers) > 1 else "")


def _readings(readings):
    """Yield the runs of code points of one reading, such as C0-C5>41."""
    for text, group in itertools.groupby(sorted(readings.items()), lambda item: item[1]):
        target = ".".join(f"{ord(c):X}" for c in text)
        yield from (f"{run}>{target}" for run in _ranges([point for point, _ in group]))


def unigram_tokenizer(pieces, character_map=None):
    """Return an XLM-R tokenizer with a character map or, without one, with `NFKC_RULES`."""
    scored = [(piece, -2 - place % 40 / 8) for place, piece in enumerate(pieces)]
    special = [(token, 0.0) for token in ("<s>", "<pad>", "</s>", "<unk>")]
    pieces = [*special, *scored, ("<mask>", 0.0)]
    rules = None if character_map else NFKC_RULES
    return UnigramTokenizer(pieces, "xlm-roberta", character_map=character_map, rules=rules)


@dataclasses.dataclass
class RandomModel:
    """Backend of a pipeline whose outputs are random multiples of 1/1024."""

    kind: object
    tokenizer: object
    max_length: int = 12
    labels: list | None = None
    settings: dict = dataclasses.field(default_factory=dict)

    def __post_init__(self):
        self._rng = np.random.default_rng(0)

    def run(self, encodings):
        return [self._outputs(len(encoding.token_ids)) for encoding in encodings]

    def _outputs(self, length):
        labels = [len(self.labels)] if self.labels else [] if self.kind == ANSWERER else [1]
        shape = [length, *labels] if self.kind.by_token else labels
        return {
            name: (self._rng.integers(1024, size=shape) / 1024).astype("float32")
            for name in self.kind.outputs
        }

    def write(self, folder, name, inputs):
        """Write the settings of a .tflite without a model, and its golden file."""
        settings = self.tokenizer.settings() | {"model_max_length": self.max_length}
        settings |= {"kind": self.kind.name, "task": self.settings}
        files = tokenizer_files(self.tokenizer)
        files |= {LABELS_FILE: "\n".join(self.labels)} if self.labels else {}
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.tflite").write_bytes(add_files(b"", settings, files))
        write_golden(folder / f"{name}.json", pipeline_of(self), inputs)


def write_golden_files(golden):
    """Write the golden files of docs/android, which the tests of docs/swift read too."""
    wordpiece = WordPieceTokenizer(VOCABULARY)
    unigram = unigram_tokenizer(PIECES)
    mapped = unigram_tokenizer(PIECES, compile_rules(CHARACTERS))
    tags, by_character = ["O", "B-x", "I-x"], {"unit": "character"}
    nulls = {"null_answers": True, "max_question_length": 3}
    for kind, name, tokenizer, labels, settings in (
        (CLASSIFIER, "one_label", wordpiece, ["bad", "good"], {"threshold": 0.5}),
        (CLASSIFIER, "pairs", wordpiece, ["no", "yes"], {"pairs": True}),
        (
            MULTI_LABEL_CLASSIFIER,
            "several_labels",
            wordpiece,
            ["a", "b", "c"],
            {"thresholds": [0.3, 0.5, 0.7]},
        ),
        (TAGGER, "words", wordpiece, tags, {"words": AFFIXES}),
        (TAGGER, "characters", wordpiece, tags, by_character),
        (ANSWERER, "answers", wordpiece, None, nulls),
        (EMBEDDER, "vectors", wordpiece, None, PROMPTS),
        (TAGGER, "unigram_characters", unigram, tags, by_character),
        (TAGGER, "unigram_words", mapped, tags, {"words": AFFIXES}),
        (ANSWERER, "unigram_answers", mapped, None, nulls),
    ):
        texts = TEXTS if tokenizer is wordpiece else UNIGRAM_TEXTS
        pairs = kind == ANSWERER or settings.get("pairs")
        inputs = Inputs(texts, texts[::-1]) if pairs else Inputs(texts)
        RandomModel(kind, tokenizer, 12, labels, settings).write(golden, name, inputs)
        path = golden / f"{name}.json"
        # The last digits of an exponential differ between processors.
        content = json.loads(path.read_text("utf-8"), parse_float=lambda n: round(float(n), 12))
        path.write_text(json.dumps(content) + "\n")


if __name__ == "__main__":
    for table in TABLES:
        table.write_text(character_table(), "utf-8")
    shutil.rmtree(GOLDEN)
    write_golden_files(GOLDEN)
