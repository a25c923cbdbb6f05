"""Signatures of any length and of fixed ones, over one set of weights."""

import collections
import dataclasses

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.compiled_model import CompiledModel
from ai_edge_litert.interpreter import Interpreter

from distill.export.length_signatures import check_lengths, cut
from distill.export.options import Export
from distill.export.tflite import export_tflite
from distill.runtime import QuestionAnswerer, TextClassifier
from tests.distill.expected import keras_outputs, keras_probabilities, padded_inputs, tree_of
from tests.models.small import sizes
from tfnlp.models import XLNetConfig, build_model
from tfnlp.text import Encoding
from tfnlp.utils.errors import InputError

LABELS = ["bad", "good"]
TEXTS = [
    "a film",
    "the film is not dull !",
    "a fine film , not dull , the plot is fine .",
    "x " * 50,
]


def graphs_of(tree):
    """{signature: its graph}."""
    return {s.signatureKey.decode(): tree.subgraphs[s.subgraphIndex] for s in tree.signatureDefs}


def operators(tree, graph):
    """{number of TFLite's operator: how many there are}."""
    codes = [tree.operatorCodes[o.opcodeIndex] for o in graph.operators]
    return collections.Counter(code.builtinCode for code in codes)


def products(tree, graph):
    found = operators(tree, graph)
    kinds = schema.BuiltinOperator
    return found[kinds.FULLY_CONNECTED] + found[kinds.BATCH_MATMUL]


@pytest.fixture(scope="module")
def model(tiny_config):
    config = dataclasses.replace(
        tiny_config, hidden_dim=64, intermediate_dim=128, num_layers=1, initializer_range=0.1
    )
    return build_model(config, "classifier", 2)


@pytest.fixture(scope="module")
def files(model, tokenizer, tmp_path_factory):
    """An int8 file of any length and of fixed ones, and a float32 one of these alone."""
    folder = tmp_path_factory.mktemp("files")
    arguments = {
        "both": {"fixed_lengths": [8, 16]},
        "fixed": {"fixed_lengths": [16, 8, 8], "fixed_only": True, "quantization": "float32"},
    }
    for name, options in arguments.items():
        export_tflite(model, folder / name, tokenizer, LABELS, Export(max_length=20, **options))
    return {name: folder / name for name in arguments}


def test_lengths_go_from_3_to_the_maximum():
    assert check_lengths([3, 20], False, 20) == [None, 20, 3]
    for length in (2, 21):
        with pytest.raises(InputError, match="must lie between 3 and 20"):
            check_lengths([length], False, 20)


def test_signatures_share_their_weights(files):
    tree = tree_of(files["both"])
    graphs = graphs_of(tree)
    assert list(graphs) == ["run", "run_16", "run_8"]
    assert graphs["run"] is tree.subgraphs[0]  # which the metadata is of
    for name, length in {"run": -1, "run_16": 16, "run_8": 8}.items():
        tensors = [graphs[name].tensors[i] for i in graphs[name].inputs]
        found = [x.shape if x.shapeSignature is None else x.shapeSignature for x in tensors]
        assert [shape.tolist() for shape in found] == [[1, length]] * 3
    of_any = {tensor.buffer for tensor in graphs["run"].tensors}
    own = [b.data for i, b in enumerate(tree.buffers) if i not in of_any and b.data is not None]
    # Of fixed lengths the positions are constants; the rest is metadata and biases.
    assert sum(map(len, own)) < (16 + 8) * 64 * 4 + 3000
    assert sum(len(tree.buffers[i].data) for i in of_any if tree.buffers[i].data is not None) > 3e4


def test_a_text_is_run_by_the_smallest_signature_that_holds_it(files, model, tokenizer):
    classifier = TextClassifier(files["both"])
    assert list(classifier.backend._signatures) == [8, 16, None]
    used = []

    def recorded(length, runner):
        return lambda **inputs: used.append((length, inputs["ids"].shape)) or runner(**inputs)

    runners = classifier.backend._signatures
    classifier.backend._signatures = {n: recorded(n, runner) for n, runner in runners.items()}
    found = [classifier.classify(text)[0] for text in TEXTS]
    assert used == [(8, (1, 8)), (8, (1, 8)), (16, (1, 16)), (None, (1, 20))]
    expected = keras_probabilities(model, tokenizer, TEXTS, 20)
    rows = [list(answer.probabilities.values()) for answer in found]
    np.testing.assert_allclose(rows, expected, atol=0.02)


def test_fixed_lengths_alone(files, model, tokenizer):
    graphs = graphs_of(tree_of(files["fixed"]))
    assert list(graphs) == ["run", "run_8"]
    classifier = TextClassifier(files["fixed"])
    assert classifier.max_length == 16 and list(classifier.backend._signatures) == [8, 16]
    rows = [list(answer.probabilities.values()) for answer in classifier.classify(TEXTS)]
    np.testing.assert_allclose(rows, keras_probabilities(model, tokenizer, TEXTS, 16), atol=1e-5)
    (long,) = tokenizer.encode(TEXTS[-1:])  # longer than the file reads: cut, [SEP] kept
    found = classifier.backend.run_one(long)["probability"]
    np.testing.assert_allclose(found, rows[-1], atol=1e-5)


def test_positions_of_fixed_lengths_are_constants_and_padding_is_left_out(tokenizer, tmp_path):
    fields = {"vocabulary_size": tokenizer.vocabulary_size, "intermediate_dim": 48}
    config = XLNetConfig(**sizes(num_layers=1, hidden_dim=32, initializer_range=0.2, **fields))
    model, path = build_model(config, "answerer"), tmp_path / "m.tflite"
    options = {"quantization": "float32", "max_length": 24, "fixed_lengths": [16]}
    export_tflite(model, path, tokenizer, options=Export(**options))
    tree = tree_of(path)
    graphs = graphs_of(tree)
    known = {*graphs["run_16"].inputs}  # what depends on the text
    for operator in graphs["run_16"].operators:
        assert known & {*operator.inputs}, "an operation on constants alone"
        known |= {*operator.outputs}
    before, after = (products(tree, graphs[key]) for key in ("run", "run_16"))
    assert before - after == 2  # the block's projections of sinusoids, in two halves
    answerer = QuestionAnswerer(path)
    encodings = tokenizer.encode(TEXTS[:3])
    fixed = [answerer.backend.run_one(encoding) for encoding in encodings]
    answerer.backend._signatures.pop(16)
    for encoding, found in zip(encodings, fixed, strict=True):
        expected, length = keras_outputs(model, encoding), len(encoding.token_ids)
        for name, values in answerer.backend.run_one(encoding).items():
            assert len(found[name]) == len(values) == length
            np.testing.assert_allclose(found[name], values, atol=1e-5)
            np.testing.assert_allclose(values, expected[name], atol=1e-4)


def test_the_graph_of_any_length_has_no_arithmetic_on_shapes(files):
    tree = tree_of(files["both"])
    found, kinds = operators(tree, tree.subgraphs[0]), schema.BuiltinOperator
    assert not any(found[k] for k in (kinds.PACK, kinds.REDUCE_PROD, kinds.FILL))
    assert found[kinds.SHAPE] == 2  # the text's length, as it is given and as it is read
    interpreter = Interpreter(str(files["both"]), num_threads=1)
    run = interpreter.get_signature_runner("run")
    ids = np.ones((1, 5), "int32")
    run(ids=ids, mask=ids, segment_ids=0 * ids)
    names = [details["op_name"] for details in interpreter._get_ops_details()]
    # Embeddings and mask are of whole numbers, which XNNPACK leaves to TFLite; then it has all.
    assert 1 <= names.count("DELEGATE") <= 2
    (output,) = run.get_output_details().values()
    assert output["shape_signature"].tolist() == [1, 2]  # one text in a call


def test_padding_beyond_the_limit_is_cut_before_the_last_token(files, tokenizer):
    classifier = TextClassifier(files["both"])
    run = Interpreter(str(files["both"])).get_signature_runner("run")
    for count in (3, 17, 18, 19, 25, 40):
        (encoding,) = tokenizer.encode(["x " * count])
        found = run(**padded_inputs(encoding, 50))["probability"][0]
        (short,) = tokenizer.encode(["x " * count], max_length=20)
        expected = classifier.backend.run_one(short)["probability"]
        np.testing.assert_allclose(found, expected, atol=0.01)


@pytest.mark.parametrize("length", [19, 20, 21, 30])
def test_a_text_up_to_the_limit_is_read_whole_and_a_longer_one_keeps_its_last_token(length):
    for count in range(3, length + 1):
        ids = [*range(1, count + 1)]
        inputs = {"token_ids": np.array([ids + [0] * (length - count)])}
        inputs["padding_mask"] = (inputs["token_ids"] > 0).astype("int32")
        expected = ids if count <= 20 else [*ids[:19], ids[-1]]
        outputs = cut(inputs, 20)
        padding = [0] * (min(length, 20) - len(expected))
        assert outputs["token_ids"].numpy().tolist() == [expected + padding]
        assert outputs["padding_mask"].numpy().sum() == len(expected)


def test_the_compiled_model_runs_fixed_lengths_as_they_are_and_any_once_resized(files):
    encoding = Encoding([2, 5, 6, 7, 3], [0] * 5)
    expected = TextClassifier(files["both"]).backend.run_one(encoding)["probability"]
    for key, length in (("run_8", 8), ("run", 5)):
        compiled = CompiledModel.from_file(str(files["both"]))
        values = padded_inputs(encoding, length)
        if key == "run":
            for name in values:
                compiled.resize_input_tensor_by_name(key, name, [1, length])
        inputs = {name: compiled.create_input_buffer_by_name(key, name) for name in values}
        for name, buffer in inputs.items():
            buffer.write(values[name])
        output = compiled.create_output_buffer_by_name(key, "probability")
        compiled.run_by_name(key, inputs, {"probability": output})
        np.testing.assert_allclose(output.read(2, np.float32), expected, atol=0.01)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"fixed_lengths": ["8"]}, "fixed_lengths='8'"),
        ({"fixed_only": True}, "fixed_only=True"),
        ({"score_threshold": 1.5}, "score_threshold=1.5"),
        ({"pooling": "mean", "score_threshold": 0.5}, "embedder"),
    ],
)
def test_bad_arguments_are_named(changes, message, model, tokenizer, tmp_path):
    with pytest.raises(InputError, match=message):
        export_tflite(model, tmp_path / "m", tokenizer, LABELS, Export(max_length=20, **changes))
    assert not (tmp_path / "m").exists()
