"""What docs/mobile.md says, held against files; and MediaPipe, in an environment of its own."""

import dataclasses
import json
import os
import pathlib
import re
import string
import subprocess
import unicodedata
import zipfile

import keras
import numpy as np
import pytest
import tensorflow as tf
import tokenizers
from ai_edge_litert.interpreter import Interpreter
from flatbuffers.number_types import Float32Flags
from flatbuffers.table import Table

from distill.export.character_rules import CODE_POINTS
from distill.export.conversion import to_tflite
from distill.export.length_signatures import signatures
from distill.export.mediapipe import (
    differing_characters,
    mediapipe_differences,
    mediapipe_rules,
    sentencepiece_model,
)
from distill.export.metadata import complete_file
from distill.export.options import Credits, Export
from distill.export.tflite import check_labels, export_tflite
from distill.runtime import TextClassifier, TextEmbedder, load_runner
from distill.runtime.associated_files import SENTENCEPIECE_FILE
from tests.distill.expected import keras_outputs, padded_inputs
from tests.models.small import sizes
from tfnlp.models import AlbertConfig, build_model
from tfnlp.tasks.kinds import TEXT_KINDS
from tfnlp.text import UnigramTokenizer, WordPieceTokenizer, train_unigram

ROOT = pathlib.Path(__file__).parents[3]
DOCUMENT = (ROOT / "docs" / "mobile.md").read_text()
APP = ROOT / "docs/android/app/src/main/kotlin/tfnlp/app"
TEXTS = ["a fine film", "정말 지루하다", "the plot is not dull , the film is !", "x " * 60]
LEAST = 0.55  # probability of an answer of a file
CREDITS = Credits("1.0", "Me", "Apache-2.0")


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", DOCUMENT, re.S)


def quoted(code):
    return set(re.findall(r'"([a-z_0-9]+)"', code))


def tensors(path, key):
    runner = Interpreter(str(path)).get_signature_runner(key)
    given = {n: d["shape_signature"].tolist() for n, d in runner.get_input_details().items()}
    found = {n: d["shape_signature"].tolist() for n, d in runner.get_output_details().items()}
    return given, found


@pytest.fixture(scope="module")
def files(tiny_config, tokenizer, tmp_path_factory):
    """Classifiers as the document exports them, of a fixed length, of an ALBERT; an embedder."""
    keras.utils.set_random_seed(0)
    folder = tmp_path_factory.mktemp("mobile")
    labels = ["negative", "positive"]
    config = dataclasses.replace(tiny_config, num_layers=1)
    classifier = build_model(config, "classifier", 2)
    options = {"credits": CREDITS, "score_threshold": 0.4}
    export_tflite(classifier, folder / "model.tflite", tokenizer, labels, Export(**options))
    options = {"fixed_lengths": [32], "fixed_only": True, "quantization": "float32"}
    arguments = folder / "fixed.tflite", tokenizer, labels, Export(**options)
    export_tflite(classifier, *arguments, {"threshold": LEAST, "none_label": "neither"})
    several = build_model(config, "multi_label_classifier", 2)
    export_tflite(several, folder / "labels.tflite", tokenizer, labels, Export("float32"))
    encoder = build_model(config)
    path = folder / "embedder.tflite"
    export_tflite(encoder, path, tokenizer, options=Export(quantization="float32", pooling="mean"))
    pieces = train_unigram(TEXTS[:3], 60, keep_accents=True)
    fields = sizes(vocabulary_size=pieces.vocabulary_size, num_layers=1, hidden_dim=32)
    albert = AlbertConfig(**fields, embedding_dim=8, max_length=32)
    model, path = build_model(albert, "classifier", 2), folder / "albert.tflite"
    export_tflite(model, path, pieces, labels, Export("float32"))
    return folder, encoder, pieces


def test_the_document_names_what_is_in_a_file(files):
    folder, _, _ = files
    rows = re.findall(r"^\| `(\w+)` \| int32 \| \(1, L\)", DOCUMENT, re.M)
    assert tensors(folder / "model.tflite", "run") == (
        {name: [1, -1] for name in rows},
        {"probability": [1, 2]},
    )
    assert tensors(folder / "fixed.tflite", "run")[0] == {name: [1, 32] for name in rows}
    assert tensors(folder / "embedder.tflite", "run")[1] == {"embedding": [1, 32]}
    keys = signatures([None, 128, 64, 32])
    assert {f"`{key}`" for key in keys} == set(re.findall(r"`run(?:_\d+)?`", DOCUMENT))
    # The table of outputs, and what the exporter writes.
    table = re.findall(r"^\| ([a-z, -]+?)(?: \(.*\))? \| (`.*`) \| float32", DOCUMENT, re.M)
    said = {
        kind: set(re.findall(r"`(\w+)`", row))
        for kinds, row in table
        for kind in kinds.split(", ")
    }
    assert said == {kind.name: set(kind.outputs) for kind in TEXT_KINDS}
    # What the code of apps calls tensors and signatures.
    litert = DOCUMENT[DOCUMENT.index("## LiteRT") : DOCUMENT.index("## Text into ids")]
    (code,) = re.findall(r"```swift\n(.*?)```", litert, re.S)
    assert quoted(code) == {*rows, "probability", "run"}
    assert {*rows, "run"} <= quoted((APP / "LiteRtModel.kt").read_text())
    for name in ("model.tflite", "albert.tflite"):
        with zipfile.ZipFile(folder / name) as archive:
            for file in archive.namelist():
                assert f"`{file}`" in DOCUMENT
    assert SENTENCEPIECE_FILE in archive.namelist()


def test_metadata_names_author_version_and_licence(files):
    content = (files[0] / "model.tflite").read_bytes()
    for field in ("1.0", "Me", "Apache-2.0"):
        assert b"\0" + field.encode() + b"\0" in content
    # By the slots of MediaPipe's schema.
    root = Table(bytearray(content), content.index(b"M001") - 4)
    root = Table(root.Bytes, root.Indirect(root.Pos))
    said = [root.String(root.Offset(4 + 2 * slot) + root.Pos).decode() for slot in (2, 4, 5)]
    assert said == ["1.0", "Me", "Apache-2.0"]
    options = root
    for slot in (3, 3, 4):  # the graph, its output, what is done with that
        first = options.Vector(options.Offset(4 + 2 * slot))
        options = Table(options.Bytes, options.Indirect(first))
    options = Table(options.Bytes, options.Indirect(options.Offset(6) + options.Pos))
    threshold = options.Get(Float32Flags, options.Offset(4) + options.Pos)
    assert threshold == pytest.approx(0.4)
    other = (files[0] / "fixed.tflite").read_bytes()
    assert b"\0Apache-2.0\0" not in other


def test_bare_numbers_as_labels_are_warned_about(caplog):
    check_labels(["0", "1"], 2)
    assert "The labels 0, 1 are bare numbers" in caplog.text
    caplog.clear()
    check_labels(["bad", "1"], 2)
    assert caplog.text == ""


def test_an_embedder_gives_the_mean_of_real_tokens(files, tokenizer):
    folder, encoder, _ = files
    embedder = TextEmbedder(folder / "embedder.tflite")
    found = embedder.embed(TEXTS)
    for row, encoding in zip(found, tokenizer.encode(TEXTS, max_length=48), strict=True):
        mean = keras_outputs(encoder, encoding)["sequence_output"].mean(0)
        np.testing.assert_allclose(row, mean / np.linalg.norm(mean), atol=1e-5)
    assert embedder.embed("a fine film").tolist() == found[:1].tolist()
    runner = Interpreter(str(folder / "embedder.tflite")).get_signature_runner()
    (encoding,) = tokenizer.encode(TEXTS[:1])
    inputs = padded_inputs(encoding, len(encoding.token_ids) + 2, padding=7)
    padded = runner(**inputs)["embedding"]
    np.testing.assert_allclose(padded[0], found[0], atol=1e-5)


def test_the_sentencepiece_model_gives_the_tokenizers_ids(files, tmp_path):
    import sentencepiece

    # One as Google's are: with a compiled normalisation.
    arguments = {"vocab_size": 60, "hard_vocab_limit": False, "minloglevel": 2}
    arguments["control_symbols"] = ["[CLS]", "[SEP]", "[MASK]"]
    arguments |= {"pad_id": 0, "pad_piece": "<pad>", "unk_id": 1, "bos_id": -1, "eos_id": -1}
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXTS[:3] * 5),
        model_prefix=str(tmp_path / "spiece"),
        normalization_rule_name="nmt_nfkc",
        **arguments,
    )
    (tmp_path / "tokenizer_config.json").write_text('{"keep_accents": true}')
    theirs = UnigramTokenizer.from_folder(tmp_path, "albert")
    for tokenizer in (theirs, files[2]):
        model = sentencepiece.SentencePieceProcessor(model_proto=sentencepiece_model(tokenizer))
        assert model.vocab_size() == tokenizer.vocabulary_size
        frame = [model.piece_to_id("[CLS]")], [model.piece_to_id("[SEP]")]
        for text in [*TEXTS[:3], "ｆine  film", "unknown 字"]:
            (encoding,) = tokenizer.encode([text])
            if tokenizer is theirs or text in TEXTS:
                assert frame[0] + model.encode(text) + frame[1] == encoding.token_ids
    assert mediapipe_differences(files[2]) == []
    (said,) = mediapipe_differences(train_unigram(TEXTS[:3], 60, "deberta-v2", lowercase=False))
    assert "keeps capitals" in said


def characters_in_words():
    """Each assigned character alone, in a word and at its edges; and the characters, by text."""
    characters = [
        c for c in map(chr, CODE_POINTS[1:]) if unicodedata.category(c) not in ("Cn", "Co")
    ]
    rows = [characters[i : i + 128] for i in range(0, len(characters), 128)]
    return [" ".join(f"{c} {c}a a{c}a a{c} x" for c in row) for row in rows], rows


# SentencePiece's mark of a space; and marks that are two for DeBERTa, one of which combines.
LEFT_OUT = {"albert": "\u2581", "deberta-v2": "\u2581\u0340\u0341\u0344"}


@pytest.mark.parametrize(
    ("family", "keep"), [("albert", True), ("albert", False), ("deberta-v2", 1)]
)
def test_sentencepiece_reads_every_character_as_the_tokenizer(family, keep):
    """The text is lowercased from A to Z before, as MediaPipe does."""
    import sentencepiece

    texts, _ = characters_in_words()
    learned = [*TEXTS, 'Élan é "x" ½ 字 ① ﬁ Ⅳ'] * 3
    tokenizer = train_unigram(learned, 90, family, lowercase=True, keep_accents=bool(keep))
    model = sentencepiece.SentencePieceProcessor(model_proto=sentencepiece_model(tokenizer))
    texts = [text.translate(dict.fromkeys(map(ord, LEFT_OUT[family]))) for text in texts]
    texts.append("``a'' e\u0301 \u1112\u1161\u11ab")
    lower = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
    ids = model.encode([text.translate(lower) for text in texts])
    wrong = [
        text
        for text, row, encoding in zip(texts, ids, tokenizer.encode(texts), strict=True)
        if encoding.token_ids[1:-1] != row
    ]
    assert wrong == []


def test_differences_of_mediapipe_are_found():
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *string.ascii_letters, "é", "##a", "П", "가"]
    tokenizer = WordPieceTokenizer(tokens, strip_accents=False)
    characters = differing_characters(tokenizer)
    assert characters.keys() == {"removed", "split", "joined", "changed"}
    assert {*"\u200b\ufeff\u00ad\x00\x07\ue000"} <= {*characters["removed"]}
    assert {*"\u00a0\u3000\u2028"} <= {*characters["split"]}
    assert characters["changed"] == ["É", "П", "\u212a"]  # the Kelvin sign is a k
    stripping = differing_characters(WordPieceTokenizer(tokens))
    assert {*"éÉ\u00c5\u00e7\u212b"} <= {*stripping["changed"]}
    assert "\u0301" in stripping["removed"]
    cased = differing_characters(WordPieceTokenizer(tokens, lowercase=False))
    assert cased["changed"] == [*string.ascii_uppercase]
    whole = differing_characters(WordPieceTokenizer(tokens, strip_accents=False, split_cjk=False))
    assert {*"字一\U00020000"} <= {*whole["joined"]} and "字" not in characters["joined"]
    said = mediapipe_differences(tokenizer)
    assert len(said) == 4 and said[3].startswith(
        "MediaPipe reads 3 characters in another case, or with accents, than the tokenizer "
        "(U+00C9, U+041F, U+212A): it lowercases A-Z alone"
    )


MEDIAPIPE = """
import json, sys
from mediapipe.tasks.metadata import metadata_schema_py_generated as schema
from mediapipe.tasks.python import BaseOptions, text

texts, found = json.load(sys.stdin), {}
for name in ("model", "fixed", "albert", "labels"):
    base = BaseOptions(model_asset_path=f"{name}.tflite")
    options = text.TextClassifierOptions(base_options=base)
    with text.TextClassifier.create_from_options(options) as classifier:
        rows = [classifier.classify(one).classifications[0].categories for one in texts]
    found[name] = [{c.category_name: c.score for c in row} for row in rows]
base = BaseOptions(model_asset_path="embedder.tflite")
options = text.TextEmbedderOptions(base_options=base)
with text.TextEmbedder.create_from_options(options) as embedder:
    found["embedder"] = [embedder.embed(one).embeddings[0].embedding.tolist() for one in texts]
content = open("model.tflite", "rb").read()
metadata = schema.ModelMetadata.GetRootAs(content, content.index(b"M001") - 4)
said = metadata.Version(), metadata.Author(), metadata.License()
found["credits"] = [field.decode() for field in said]
print(json.dumps(found))
"""


@pytest.fixture
def mediapipe():
    """What runs Python code with MediaPipe, in a folder: (code, folder, standard input)."""
    python = os.environ.get("TFNLP_MEDIAPIPE_PYTHON")
    if not python:
        pytest.skip("no MediaPipe; `make mobile` makes it an environment of its own")

    def run(code, folder, given=""):
        command = [python, "-c", code]
        done = subprocess.run(
            command, check=False, cwd=folder, input=given, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stdout

    return run


ECHO = """
import json, sys
from mediapipe.tasks.python import BaseOptions, text

base = BaseOptions(model_asset_path="echo.tflite")
options = text.TextEmbedderOptions(base_options=base)
with text.TextEmbedder.create_from_options(options) as embedder:
    rows = [embedder.embed(one).embeddings[0].embedding for one in json.load(sys.stdin)]
print(json.dumps([row.astype(int).tolist() for row in rows]))
"""


def test_mediapipes_rules_are_its_own(mediapipe, tmp_path):
    """By a file whose vector is the ids that MediaPipe reads."""
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *"axyz!é字", "##a", "##é", *"²\u200b\u00a0"]
    length, names = 2048, ("ids", "mask", "segment_ids")

    def echo(ids, mask, segment_ids):
        return {"embedding": tf.cast(ids * mask + 0 * segment_ids, "float32")}

    specs = [tf.TensorSpec((1, length), "int32", name) for name in names]
    content = to_tflite(tf.Module(), {"serving_default": (echo, specs)}, "float32")
    files = {"vocab.txt": "\n".join(tokens)}
    content = complete_file(content, Export(name="echo"), "ids", {"": "ids"}, {}, files)
    (tmp_path / "echo.tflite").write_bytes(content)
    texts, rows = characters_in_words()
    texts.append("a\x00a")
    found = json.loads(mediapipe(ECHO, tmp_path, json.dumps(texts)).splitlines()[-1])
    ids = {token: i for i, token in enumerate(tokens)}
    engine = tokenizers.Tokenizer(tokenizers.models.WordPiece(ids, unk_token="[UNK]"))
    engine.pre_tokenizer = tokenizers.pre_tokenizers.Split(" ", "removed")
    rules = str.maketrans(mediapipe_rules())
    assert found.pop()[:4] == [2, 4, 3, 0]  # up to the first zero
    wrong = []
    for text, row, read in zip(texts, rows, found, strict=False):
        expected = [2, *engine.encode(text.translate(rules)).ids, 3]
        if read[: len(expected) + 1] != [*expected, 0]:
            wrong += row
    assert wrong == []


def test_mediapipe_gives_what_the_runtime_gives(files, mediapipe):
    folder = files[0]
    found = json.loads(mediapipe(MEDIAPIPE, folder, json.dumps(TEXTS)).splitlines()[-1])
    assert found["credits"] == ["1.0", "Me", "Apache-2.0"]
    for name in ("model", "fixed", "albert", "labels"):
        expected = load_runner(folder / f"{name}.tflite").classify(TEXTS)
        for scores, answer in zip(found[name], expected, strict=True):
            threshold = {"model": 0.4, "fixed": LEAST}.get(name, 0.0)
            kept = {k: p for k, p in answer.probabilities.items() if p >= threshold}
            assert scores == pytest.approx(kept, abs=0.02)
    expected = TextEmbedder(folder / "embedder.tflite").embed(TEXTS)
    np.testing.assert_allclose(found["embedder"], expected, atol=1e-4)


def test_a_file_keeps_the_threshold_below_which_it_has_no_answer(files):
    answers = load_runner(files[0] / "fixed.tflite").classify(TEXTS)
    for answer in answers:
        best = max(answer.probabilities, key=answer.probabilities.get)
        is_sure = answer.probabilities[best] >= LEAST
        assert answer.label == (best if is_sure else "neither")
    assert len({answer.label for answer in answers}) > 1


def test_the_documents_client_runs(files, mediapipe):
    (client,) = blocks("python")
    *lines, similarity = mediapipe(client, files[0]).splitlines()
    answers = TextClassifier(files[0] / "model.tflite").classify(TEXTS[:2])
    for line, text, answer in zip(lines, TEXTS, answers, strict=False):
        said, label, score = line.split("\t")
        assert (said, label) == (text, answer.label)
        assert float(score) == pytest.approx(answer.probabilities[label], abs=0.02)
    first, second = TextEmbedder(files[0] / "embedder.tflite").embed(TEXTS[:2])
    assert float(similarity) == pytest.approx(float(first @ second), abs=1e-4)
