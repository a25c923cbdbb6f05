"""An index finds what exact search does, with the model and with its file."""

import json

import numpy as np
import pytest

from distill.export import Export, export_tflite
from distill.runtime import IndexSettings, TextEmbedder, TextIndex, recall, write_index
from distill.runtime.text_index import rounded
from tfnlp.models import build_model
from tfnlp.pipelines.keras_backend import KerasBackend
from tfnlp.pipelines.pipeline import Embedder
from tfnlp.utils.errors import InputError

pytest.importorskip("usearch")
WORDS = ["a", "the", "fine", "good", "film"]
TEXTS = [(f"{a} {b} {c}", f"notes, {a}{b}{c}") for a in WORDS for b in WORDS for c in WORDS]


SETTINGS = {"max_length": 12, "prompts": {"query": "the ", "document": "a "}}


@pytest.fixture
def model(one_layer):
    return build_model(one_layer, "embedder")


@pytest.fixture
def embedder(model, tokenizer):
    return Embedder(KerasBackend(model, tokenizer, None, SETTINGS))


@pytest.mark.parametrize(("precision", "share"), [("float32", 1), ("int8", 0.95), ("bits", 0.9)])
def test_an_index_finds_the_nearest_texts(precision, share, embedder, tmp_path):
    vectors = write_index(tmp_path, TEXTS, embedder, IndexSettings(precision))
    index = TextIndex(tmp_path, embedder)
    assert recall(index, vectors) >= share
    (query,) = embedder.embed(["good film"], prompt="query")
    hits = index.search("good film", 3)
    expected = vectors @ query
    order = np.argsort(-expected, kind="stable")
    assert hits[0].score == pytest.approx(expected[order[0]], abs=0.02)
    # As docs/similar_texts.md has the vectors in the file.
    others = {i for row in index.texts for i in row.get("same", ())}
    firsts = [i for i in range(len(TEXTS)) if i not in others]
    kept = rounded(vectors, index.facts)[firsts]
    stored = np.fromfile(tmp_path / "index.usearch", kept.dtype, kept.size, offset=8)
    np.testing.assert_array_equal(stored.reshape(kept.shape), kept)
    if precision == "float32":
        found = [(hit.text, hit.source) for hit in hits]
        assert found == [TEXTS[i] for i in order[:3]]


def test_a_text_without_a_vector_is_indexed_too(embedder, tmp_path, monkeypatch, caplog):
    embed = embedder.embed

    def embed_known(texts, **options):
        return embed(texts, **options) * np.array([[text != "zzz"] for text in texts])

    monkeypatch.setattr(embedder, "embed", embed_known)
    write_index(tmp_path, [("zzz", "x"), ("fine film", "y")], embedder)
    assert "1 of 2 texts have no word" in caplog.text
    index = TextIndex(tmp_path, embedder)
    assert index.search("fine film", 1)[0].source == "y"
    with pytest.raises(InputError, match="no vector"):
        index.search("zzz")
    with pytest.raises(InputError, match="no word of the texts"):
        write_index(tmp_path, [("zzz", "x")], embedder)


def test_numbers_beyond_those_of_the_index_do_not_wrap():
    rows = rounded(np.array([[0.5, 0.9, -0.9]]), {"precision": "int8", "scale": 127 / 0.5})
    assert rows.tolist() == [[127, 127, -127]]


@pytest.mark.parametrize("precision", ["float32", "int8", "bits"])
def test_many_equal_texts_hide_no_other(precision, embedder, tmp_path):
    texts = [("a", f"note {i}") for i in range(400)] + TEXTS[:30]
    vectors = write_index(tmp_path, texts, embedder, IndexSettings(precision))
    index = TextIndex(tmp_path, embedder)
    assert recall(index, vectors) > 0.95
    found = [index.search(text, 1)[0] for text, _ in TEXTS[:30]]
    expected = vectors @ index.embedder.embed([text for text, _ in TEXTS[:30]], prompt="query").T
    scores = [hit.score for hit in found]
    np.testing.assert_allclose(scores, expected.max(0), atol=0.03)
    hits = index.nearest(vectors[0], 12)[0]
    assert len({*hits.tolist()}) == 12 and {texts[i][0] for i in hits} == {"a"}


def test_a_prompt_counts_among_the_tokens(model, tokenizer, tmp_path, caplog):
    prompts = {"query": "the fine ", "document": "the "}
    settings = SETTINGS | {"prompts": prompts}  # 12 tokens, 2 of them [CLS] and [SEP]
    embedder = Embedder(KerasBackend(model, tokenizer, None, settings))
    texts = ["film " * 10, "film " * 9]
    vectors = write_index(tmp_path, [*zip(texts, "xy", strict=True)], embedder)
    assert "1 of 2 texts" in caplog.text
    np.testing.assert_allclose(vectors, embedder.embed(texts, prompt="document"), atol=1e-6)
    index = TextIndex(tmp_path, embedder)
    assert index.search("film " * 8)
    with pytest.raises(InputError, match="more than the 12 tokens"):
        index.search("film " * 9)


def test_an_index_is_written_over_one_of_bits(embedder, tmp_path):
    for precision in ("bits", "float32"):
        write_index(tmp_path, TEXTS, embedder, IndexSettings(precision))
    assert TextIndex(tmp_path, embedder).megabytes == pytest.approx(
        (tmp_path / "index.usearch").stat().st_size / 1e6
    )
    lines = (tmp_path / "texts.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "texts.jsonl").write_text("".join(lines[:-1]))
    with pytest.raises(InputError, match="124 lines for 125 texts"):
        TextIndex(tmp_path, embedder)


def test_recall_counts_the_nearest_by_hand():
    class OneHit:
        def nearest(self, vector, count):
            return np.array([0, 9]), None

    vectors = np.eye(10)
    assert recall(OneHit(), vectors, vectors[:2] + 0.1 * vectors[2:4], count=2) == 0.25
    vectors[9] = vectors[0]  # an equal text is as good
    assert recall(OneHit(), vectors, vectors[:1], count=2) == 1


def test_an_index_of_a_model_is_searched_with_its_file(embedder, model, tokenizer, tmp_path):
    write_index(tmp_path, TEXTS, embedder, IndexSettings("float32", dims=20))
    facts = json.loads((tmp_path / "index.json").read_text())
    assert (facts["dimensions"], facts["count"], len(facts["check"]["vector"])) == (20, 125, 32)
    options = Export("float32", max_length=12)
    export_tflite(model, tmp_path / "m.tflite", tokenizer, options=options, task_settings=SETTINGS)
    pair = embedder, TextEmbedder(tmp_path / "m.tflite")
    ours, of_file = (TextIndex(tmp_path, x).search("fine film", 5) for x in pair)
    assert [hit.text for hit in ours] == [hit.text for hit in of_file]


def test_what_cannot_be_indexed_or_found_is_refused(embedder, one_layer, tokenizer, tmp_path):
    for texts, dims, word in (
        ([], None, "no text"),
        ([("a", "x"), (" ", "notes.txt, line 2")], None, "line 2 is an empty"),
        (TEXTS, 33, "dims=33"),
    ):
        with pytest.raises(InputError, match=word):
            write_index(tmp_path, texts, embedder, IndexSettings(dims=dims))
    with pytest.raises(InputError, match="give the folder of an index"):
        TextIndex(tmp_path, embedder)
    write_index(tmp_path, TEXTS, embedder)
    index = TextIndex(tmp_path, embedder)
    # Of 10 words that fit, 1 is the prompt and 2 tokens are [CLS] and [SEP].
    assert index.search("film " * 9)
    for query, word in (("", "empty"), ("film " * 10, "more than the 12 tokens")):
        with pytest.raises(InputError, match=word):
            index.search(query)
    write_index(tmp_path, TEXTS, embedder, IndexSettings(dims=1))  # alike by chance, 1 of 2
    for _ in range(5):
        other = Embedder(KerasBackend(build_model(one_layer, "embedder"), tokenizer))
        with pytest.raises(InputError, match="another model"):
            TextIndex(tmp_path, other)


def test_long_texts_are_counted(embedder, tmp_path, caplog):
    write_index(tmp_path, [("film " * 10, "x"), ("film " * 9, "y")], embedder)
    assert "1 of 2 texts" in caplog.text
