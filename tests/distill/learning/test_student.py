"""A student has its teacher's head and outputs, and starts from its weights."""

import dataclasses

import numpy as np
import pytest

from distill.learning.methods import make_terms
from distill.learning.student import (
    initialize_student,
    make_student,
    make_translator_student,
    student_config,
)
from tests.models.small import sizes
from tfnlp.models import (
    AlbertConfig,
    BertConfig,
    DebertaV2Config,
    DistilBertConfig,
    Gpt2Config,
    RecurrentConfig,
    TextCnnConfig,
    TransformerConfig,
    TransformerXLConfig,
    XLNetConfig,
    build_model,
)
from tfnlp.text import WordPieceTokenizer
from tfnlp.utils.errors import InputError


def test_narrower_student_keeps_ratios_and_its_own_weights(tiny_config):
    narrow = student_config(tiny_config, 2, hidden_dim=16)
    assert (narrow.num_heads, narrow.intermediate_dim) == (2, 32)
    assert student_config(tiny_config, 2, hidden_dim=20).num_heads == 4
    own = {"intermediate_dim": 24}
    assert student_config(tiny_config, 2, hidden_dim=16, **own).intermediate_dim == 24
    config = student_config(tiny_config, size="tinybert_4l_312", **own)
    assert (config.intermediate_dim, config.hidden_dim) == (24, 312)
    teacher, student = (
        build_model(tiny_config, "classifier", 2),
        build_model(narrow, "classifier", 2),
    )
    before = student.get_layer("encoder_0").get_weights()
    assert len(initialize_student(student, teacher, [0, 2])) < len(student.weights)
    for a, b in zip(before, student.get_layer("encoder_0").get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("head", ["classifier", "tagger"])
def test_a_distilbert_is_its_teacher_without_segments_and_pooler(head, tiny_config, random_inputs):
    teacher = build_model(tiny_config, head, 2)
    student = make_student(teacher, family="distilbert")
    assert isinstance(student.text_config, DistilBertConfig)
    assert not any("segment" in weight.path for weight in student.weights)
    inputs = random_inputs(2, 7, tiny_config.vocabulary_size)
    inputs["segment_ids"] = 0 * inputs["segment_ids"]
    found, expected = student(inputs), teacher(inputs)
    np.testing.assert_allclose(found["sequence_output"], expected["sequence_output"], atol=1e-5)
    kernels = [model.get_layer("classifier").kernel for model in (student, teacher)]
    assert np.array_equal(*kernels) == (head == "tagger")
    half = make_student(teacher, 2, layer_map="last", family="distilbert")
    for i in range(2):
        pair = half.get_layer(f"encoder_{i}"), teacher.get_layer(f"encoder_{i + 1}")
        for a, b in zip(*(block.get_weights() for block in pair), strict=True):
            np.testing.assert_array_equal(a, b)


def test_students_of_other_families_have_the_teachers_sizes_or_their_own(tiny_config):
    teacher = build_model(tiny_config, "classifier", 2)
    albert = make_student(teacher, 2, family="albert")
    config = albert.text_config
    assert isinstance(config, AlbertConfig)
    assert (config.hidden_dim, config.num_heads, config.intermediate_dim) == (32, 4, 64)
    vocabulary = (config.vocabulary_size, config.pad_token_id, config.max_length)
    assert vocabulary == (tiny_config.vocabulary_size, 0, 48)
    # The group starts from the layer that its first one is mapped to.
    weights = {w.path: w.numpy() for w in teacher.weights}
    path = "attention/query/kernel"
    found = {w.path: w for w in albert.weights}[f"encoder/block_0/{path}"]
    np.testing.assert_array_equal(found, weights[f"encoder_0/{path}"])
    config = student_config(tiny_config, size="bert_tiny")
    assert (config.num_layers, config.hidden_dim, config.intermediate_dim) == (2, 128, 512)
    assert config.vocabulary_size == tiny_config.vocabulary_size
    config = student_config(tiny_config, 1, hidden_dim=64, size="bert_tiny")
    assert (config.num_layers, config.hidden_dim, config.intermediate_dim) == (1, 64, 256)
    endless = XLNetConfig(**SIZES)
    assert student_config(endless, family="bert").max_length == 512
    assert student_config(tiny_config, family="xlnet").max_length is None
    with pytest.raises(InputError, match="family=bart is unknown"):
        make_student(teacher, 2, family="bart")


SIZES = sizes(vocabulary_size=24, num_layers=4, initializer_range=0.5)


@pytest.mark.parametrize(
    ("config", "head", "classes"),
    [
        (AlbertConfig(**SIZES, embedding_dim=4, num_groups=2), "chooser", None),
        (DebertaV2Config(**SIZES, max_distance=8, num_buckets=4, convolution_size=3), "tagger", 3),
        (Gpt2Config(**SIZES, max_length=16), "classifier", 2),
        (TransformerXLConfig(**SIZES, cutoffs=(9,), share_biases=True), "answerer", None),
        (XLNetConfig(**SIZES), "classifier", 1),
    ],
    ids=lambda value: type(value).__name__ if hasattr(value, "num_layers") else str(value),
)
def test_students_of_all_families_start_from_all_of_the_teacher(
    config, head, classes, random_inputs
):
    teacher = build_model(config, head, classes, hidden_states=True)
    student = make_student(teacher, 2)
    assert student.output.keys() == teacher.output.keys()
    assert len(student.output["hidden_states"]) == 3
    assert len(initialize_student(student, teacher, [1, 3])) == len(student.weights)
    # A student of all layers is its teacher.
    inputs = random_inputs(2, 5, 24, masked=False)
    if head == "chooser":
        inputs = {key: value[:, None].repeat(2, 1) for key, value in inputs.items()}
    found, expected = make_student(teacher, 4)(inputs), teacher(inputs)
    for key in expected.keys() - {"hidden_states"}:
        np.testing.assert_allclose(found[key], expected[key], atol=1e-6)


def test_groups_of_shared_layers_start_from_the_group_of_their_first():
    config = AlbertConfig(**SIZES, embedding_dim=4, num_groups=2)
    teacher = build_model(config, "classifier", 2)
    student = make_student(teacher, 2, layer_map=[2, 3])
    weights = {w.path: w.numpy() for w in teacher.weights}
    for weight in student.weights:
        source = weight.path.replace("encoder/block_0", "encoder/block_1")
        np.testing.assert_array_equal(weight, weights[source])


@pytest.mark.parametrize("tied", [True, False])
def test_tokens_of_another_vocabulary_start_by_their_spelling(tied, tiny_config, tokenizer):
    """Though the vocabularies be of one size: a row of another token says nothing."""
    config = dataclasses.replace(tiny_config, num_layers=1, tie_embeddings=tied)
    teacher = build_model(config, "masked_lm")
    teacher.get_layer("lm_bias").bias.assign(np.arange(1.0, 29.0))
    names = [*tokenizer.vocabulary[:5], *(f"new{i}" for i in range(11))]
    own = WordPieceTokenizer([*names, *tokenizer.vocabulary[5:17]])
    assert own.vocabulary_size == tokenizer.vocabulary_size
    student = make_student(teacher, tokenizer=own, teacher_tokenizer=tokenizer)
    weights = [{w.path: w.numpy() for w in model.weights} for model in (student, teacher)]
    paths = {"embeddings/token_table", "lm_bias/bias", *(() if tied else ("lm_output/kernel",))}
    for path in paths:
        found, theirs = (w[path].T if "kernel" in path else w[path] for w in weights)
        np.testing.assert_array_equal(found[:5], theirs[:5])
        np.testing.assert_array_equal(found[16:], theirs[5:17])
        assert np.all(np.any((found[5:16] != theirs[5:16]).reshape(11, -1), axis=1))
    for path in weights[0].keys() - paths:
        np.testing.assert_array_equal(weights[0][path], weights[1][path])


def test_a_student_that_is_not_initialized_has_another_head(tiny_config):
    teacher = build_model(tiny_config, "tagger", 3)
    before = make_student(teacher, 1, initialize=False).get_layer("classifier").kernel
    assert np.abs(before - teacher.get_layer("classifier").kernel).max() > 0.01


def test_students_of_a_pruned_model_keep_its_heads(tiny_config):
    fields = {"num_heads": 3, "head_dim": 4, "hidden_dim": 16, "intermediate_dim": 24}
    config = dataclasses.replace(tiny_config, num_layers=2, **fields)
    assert student_config(config, 1) == dataclasses.replace(config, num_layers=1)
    narrow = student_config(config, 1, hidden_dim=8)
    assert (narrow.num_heads, narrow.head_dim, narrow.intermediate_dim) == (2, None, 12)
    assert student_config(config, 1, num_heads=2).head_dim is None
    student = make_student(build_model(config, "classifier", 2), 1)
    assert student.get_layer("encoder_0").attention.key_dim == 4


def test_a_student_without_attention_has_the_sizes_of_its_family(tiny_config):
    vocabulary = {"vocabulary_size": tiny_config.vocabulary_size}
    gru = student_config(tiny_config, 1, family="gru", hidden_dim=8, bidirectional=True)
    assert gru == RecurrentConfig(
        cell="gru", num_layers=1, hidden_dim=8, bidirectional=True, **vocabulary
    )
    cnn = student_config(tiny_config, family="textcnn", channels="static", word_ngrams=None)
    assert cnn == TextCnnConfig(channels="static", **vocabulary)
    teacher = build_model(tiny_config, "classifier", 2, hidden_states=True, attention_scores=True)
    # Its tokens may start as the teacher's do.
    student = make_student(teacher, family="bag", hidden_dim=tiny_config.hidden_dim)
    assert "hidden_states" in student.output and "attention_scores" not in student.output
    tables = [model.get_layer("embeddings").token_table for model in (teacher, student)]
    np.testing.assert_array_equal(*tables)
    with pytest.raises(InputError, match="The student, a bag, has no layers to compare"):
        make_terms("tinybert", teacher, student)
    with pytest.raises(InputError, match="num_layers=1 is no field of the family textcnn"):
        student_config(tiny_config, 1, family="textcnn")
    with pytest.raises(InputError, match="The teacher is a textcnn, whose sizes a transformer"):
        student_config(cnn, family="bert")


TRANSLATOR = TransformerConfig(
    **sizes(num_layers=3, num_decoder_layers=4, dropout=0.3, max_length=16)
)


@pytest.fixture(scope="module")
def translator():
    return build_model(TRANSLATOR, "sequence_to_sequence")


def test_a_translator_has_the_weights_of_the_layers_that_the_map_names(translator):
    student = make_translator_student(translator, 1, 2, dropout=0.1)
    assert (student.text_config.num_layers, student.text_config.decoder.num_layers) == (1, 2)
    assert student.text_config.dropout == 0.1
    ours, theirs = (
        {w.path: np.asarray(w) for w in model.weights} for model in (student, translator)
    )
    assert len(ours) < len(theirs)
    picked = {"encoder_0": "encoder_2", "decoder_0": "decoder_1", "decoder_1": "decoder_3"}
    seen = set()
    for path, value in ours.items():
        layer, _, rest = path.partition("/")
        seen.add(layer)
        np.testing.assert_array_equal(value, theirs[f"{picked.get(layer, layer)}/{rest}"])
    assert picked.keys() <= seen
    assert "embeddings" in seen


def test_translators_that_cannot_be_are_refused(translator):
    with pytest.raises(InputError, match="4 layers"):
        make_translator_student(translator, num_decoder_layers=5)
    with pytest.raises(InputError, match="Transformer"):
        make_translator_student(build_model(BertConfig(**sizes(num_layers=1)), "masked_lm"))
