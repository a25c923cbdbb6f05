"""What an export says of a file beside the Keras model, and the golden answers of it."""

import dataclasses
import json

import keras
import numpy as np
import pytest

from distill.export import fidelity
from distill.export.fidelity import compare, compare_answers, describe, file_card, keras_runner
from distill.export.golden_outputs import write_golden
from distill.export.tflite import ONE_TEXT, export_tflite
from distill.reports.predictions import Inputs, predict_inputs
from distill.runtime import load_runner
from distill.runtime.associated_files import read_files
from tests.distill.conftest import HEADS, SETTINGS
from tfnlp.checkpoints import load_model
from tfnlp.models import build_model
from tfnlp.text import Encoding
from tfnlp.utils.errors import InputError

TEXTS = [
    "a fine film",
    "정말 지루하다",
    "the plot is not dull , the film is !",
    "dull",
    "x x film",
]
INPUTS = {
    "classifier": Inputs(TEXTS),
    "scorer": Inputs(TEXTS),
    "tagger": Inputs(TEXTS),
    "answerer": Inputs(["what film ?"] * 5, [f"{text} " * 4 for text in TEXTS]),
    "chooser": Inputs(TEXTS, [["fine", "dull film"]] * 5),
}


@pytest.mark.parametrize("kind", HEADS)
def test_a_float_file_is_its_model(kind, folders, files, tokenizer):
    head, _, labels = HEADS[kind]
    model = load_model(folders[kind], head)
    options = {"labels": labels, "settings": SETTINGS.get(kind), "max_length": 24}
    with keras_runner(model, kind, tokenizer, **options) as reference:
        figures = compare(load_runner(files[kind]), reference, INPUTS[kind])
    assert figures.pop("texts") == 5
    if kind == "scorer":
        assert figures["correlation"] == pytest.approx(1, abs=1e-5)
        assert figures["largest_difference"] < 1e-5
    else:
        assert figures == {"agreement": 1.0}


@dataclasses.dataclass
class Answer:
    label: str = ""
    tags: tuple = ()
    text: str = ""
    place: int = 0


@pytest.mark.parametrize(
    ("kind", "given", "expected", "figures"),
    [
        ("classifier", [Answer("a"), Answer("b")], [Answer("a"), Answer("a")], {"agreement": 0.5}),
        # Of words, however many a text has.
        (
            "tagger",
            [Answer(tags="BIO"), Answer(tags="O"), Answer()],
            [Answer(tags="BIO"), Answer(tags="B"), Answer()],
            {"agreement": 0.75},
        ),
        ("tagger", [Answer()], [Answer()], {"agreement": 1.0}),
        ("answerer", [Answer(text="x")], [Answer(text="y")], {"agreement": 0.0}),
        ("chooser", [Answer(place=1)], [Answer(place=1)], {"agreement": 1.0}),
        (
            "scorer",
            [1.0, 2.0, 4.0],
            [1.0, 3.0, 2.0],
            {"correlation": 0.3273268353539886, "largest_difference": 2.0},
        ),
        ("scorer", [1.0, 1.0], [1.0, 3.0], {"correlation": None, "largest_difference": 2.0}),
        (
            "embedder",
            [[1.0, 0.0], [0.6, 0.8]],
            [[1.0, 0.0], [1.0, 0.0]],
            {"cosine": 0.8, "least_cosine": 0.6},
        ),
    ],
)
def test_answers_are_compared_by_what_the_kind_gives(kind, given, expected, figures):
    assert compare_answers(kind, given, expected) == pytest.approx(figures)


@pytest.mark.parametrize(
    ("kind", "figures", "warns"),
    [
        ("classifier", {"agreement": 0.98}, False),
        ("tagger", {"agreement": 0.979}, True),
        ("scorer", {"correlation": 0.99, "largest_difference": 1.0}, False),
        ("scorer", {"correlation": 0.989, "largest_difference": 0.0}, True),
        ("scorer", {"correlation": None, "largest_difference": 0.0}, True),
        ("embedder", {"cosine": 0.99, "least_cosine": 0.5}, False),
        ("embedder", {"cosine": 0.989, "least_cosine": 0.989}, True),
    ],
)
def test_a_file_that_loses_much_is_warned_of_with_the_figures(kind, figures, warns, caplog):
    figures = {"texts": 3} | figures
    fidelity.warn(kind, figures, "int4")
    assert (describe(kind, figures) in caplog.text) == warns
    assert ("; int8 or float16 lose less." in caplog.text) == warns
    caplog.clear()
    fidelity.warn(kind, figures, "int8")
    assert "lose less" not in caplog.text


def test_an_export_says_how_close_it_is(tiny_config, tokenizer, tmp_path, caplog):
    keras.utils.set_random_seed(0)
    model = build_model(dataclasses.replace(tiny_config, num_layers=1))
    path = tmp_path / "model.tflite"
    how = {"quantization": "int8", "pooling": "mean", "max_length": 24}
    export_tflite(model, path, tokenizer, **how, check_inputs=Inputs(TEXTS))
    check = read_files(path)[0]["check"]
    given = load_runner(path).embed(TEXTS)
    with keras_runner(model, "embedder", tokenizer, pooling="mean", max_length=24) as reference:
        cosines = (given * reference.embed(TEXTS)).sum(1)
    assert check == {
        "texts": 5,
        "cosine": pytest.approx(cosines.mean()),
        "least_cosine": pytest.approx(cosines.min()),
    }
    assert 0.9 < check["least_cosine"] < check["cosine"] < 1 - 1e-6
    sentence = describe("embedder", check)
    assert sentence == (
        f"On 5 texts, compared with float32 Keras: cosine {cosines.mean():.4f} in the mean, "
        f"{cosines.min():.4f} at worst."
    )
    assert sentence.encode() in path.read_bytes()  # the description in the metadata
    card = file_card(path, {"name": "m", "author": None}, ["Otherwise."])
    assert f"\n{sentence}\n" in card and "| name | m |\n" in card and "author" not in card
    assert "| most tokens | 24 |" in card and "- Otherwise." in card
    export_tflite(model, path, tokenizer, **how)
    assert "check" not in read_files(path)[0]
    assert "Not compared with the Keras model" in file_card(path, {})


def test_the_reference_pools_as_the_file_does(tiny_config, tokenizer):
    keras.utils.set_random_seed(0)
    model = build_model(dataclasses.replace(tiny_config, num_layers=1))
    for pooling, pooled in (("mean", lambda x: x.mean(0)), ("first", lambda x: x[0])):
        with keras_runner(model, "embedder", tokenizer, pooling=pooling) as reference:
            rows = reference.embed(TEXTS)
        for text, row in zip(TEXTS, rows, strict=True):
            ids = np.array([tokenizer.encode([text])[0].token_ids])
            inputs = {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": np.ones_like(ids)}
            vector = pooled(np.array(model(inputs)["sequence_output"])[0])
            np.testing.assert_allclose(row, vector / np.linalg.norm(vector), atol=1e-5)


def test_inputs_are_drawn_and_taken_with_all_that_belongs_to_them():
    inputs = Inputs(list("abcd"), list("ABCD"), [1, 2, 3, 4], None)
    assert inputs.take([2, 0]) == Inputs(["c", "a"], ["C", "A"], [3, 1])
    assert inputs.draw(9) == inputs
    drawn = inputs.draw(2)
    assert len(drawn.texts) == 2 and drawn.texts != ["a", "b"]
    assert [text.upper() for text in drawn.texts] == drawn.seconds


@pytest.mark.parametrize("kind", HEADS)
def test_golden_answers_are_what_the_file_gives(kind, files, tokenizer, tmp_path):
    runner, path = load_runner(files[kind]), tmp_path / "golden.json"
    write_golden(path, runner, INPUTS[kind])
    content = json.loads(path.read_text())
    assert (content["kind"], content["max_length"]) == (kind, 24)
    assert content["settings"] == runner.settings
    expected = predict_inputs(runner, INPUTS[kind])
    assert len(content["inputs"]) == len(expected) == 5
    for given, answer in zip(content["inputs"], expected, strict=True):
        assert given["answer"] == (answer if kind == "scorer" else _as_json(answer))
        for row in given["rows"]:
            (again,) = runner.outputs_of([Encoding(row["ids"], row["segment_ids"])])
            assert again.keys() == row["outputs"].keys()
            for name, value in again.items():
                np.testing.assert_array_equal(value, np.array(row["outputs"][name], "float32"))
    counts = [len(given["rows"]) for given in content["inputs"]]
    assert counts == {"chooser": [2] * 5}.get(kind, counts)
    assert (max(counts) > 1) == (kind in ("chooser", "answerer"))  # windows
    with pytest.raises(InputError, match=r"^`golden` holds no texts; give at least one\.$"):
        write_golden(path, runner, Inputs([]))


def _as_json(answer):
    return json.loads(json.dumps(dataclasses.asdict(answer)))


@pytest.mark.parametrize("kind", ["classifier", "scorer"])
def test_a_file_of_pairs_says_so_and_refuses_single_texts(kind, folders, tokenizer, tmp_path):
    head, _, labels = HEADS[kind]
    model, path = load_model(folders[kind], head), tmp_path / "model.tflite"
    said = export_tflite(model, path, tokenizer, labels, task_settings={"pairs": True})
    assert (ONE_TEXT in said) == (kind == "classifier")
    assert b" a pair of texts " in path.read_bytes()
    runner = load_runner(path)
    with keras_runner(model, kind, tokenizer, labels=labels, settings={"pairs": True}) as other:
        for side in (runner, other):
            with pytest.raises(
                InputError, match=r"^The model was trained on pairs of texts, and "
            ):
                predict_inputs(side, Inputs(TEXTS))
            assert len(predict_inputs(side, Inputs(TEXTS, TEXTS))) == 5
    assert "| reads | pairs of texts |" in file_card(path, {})


@pytest.mark.parametrize(
    ("kind", "pairs"), [("chooser", True), ("answerer", True), ("tagger", None)]
)
def test_what_always_reads_pairs_says_so(kind, pairs, files):
    assert load_runner(files[kind]).settings.get("pairs") == pairs


def test_pairs_are_of_the_head_and_not_of_one_string(folders, tokenizer, tmp_path):
    model, path = load_model(folders["classifier"], "classifier"), tmp_path / "model.tflite"
    how = {"labels": ["bad", "good"], "task_settings": {"pairs": True}}
    with pytest.raises(InputError, match=r"^tokenizer_in_graph=True takes one string, and the "):
        export_tflite(model, path, tokenizer, **how, tokenizer_in_graph=True)
    assert not path.exists()
    said = export_tflite(model, path, tokenizer, **how, pooling="mean")
    assert ONE_TEXT not in said and load_runner(path).settings == {}
