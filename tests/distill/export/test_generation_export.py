"""Exported language models: the same tokens as Keras writes, token by token with caches."""

import collections
import pathlib
import re

import numpy as np
import pytest

from distill.export.generation_export import export_generator
from distill.export.options import DecoderExport
from distill.runtime import Beam, Greedy, TextClassifier, TextGenerator, load_runner
from distill.runtime.cached_decoder import CachedDecoder, is_cache
from tests.distill.expected import tree_of
from tests.distill.searches import assert_same_texts, padded, train_a_little, without_xla
from tests.grammar_corpus import make_reviews
from tfnlp.generation import Generator, Sample
from tfnlp.models import BertConfig, Gpt2Config, GptConfig, RecurrentConfig, build_model
from tfnlp.text import train_tokenizer
from tfnlp.utils.errors import InputError

TEXTS = [text for text, _ in make_reviews(200)]
SIZES = {"num_layers": 2, "num_heads": 2, "hidden_dim": 16, "intermediate_dim": 32}
MAX_LENGTH, STEPS, BEAMS = 48, 10, 3
OPTIONS = {"max_length": MAX_LENGTH, "beams": BEAMS, "max_new_tokens": STEPS}


@pytest.fixture(scope="module")
def bpe():
    return train_tokenizer(TEXTS, "bpe", 400, "gpt2")[0]


def random_model(config, bpe):
    config = config(
        vocabulary_size=bpe.vocabulary_size, max_length=64, initializer_range=0.6, **SIZES
    )
    return build_model(config, "causal_lm")


@pytest.fixture(scope="module")
def prompts(bpe):
    """50 prompts of 1 to 16 tokens, and an empty one."""
    rng = np.random.default_rng(0)
    cut = [" ".join(text.split()[: rng.integers(1, 9)]) for text in TEXTS]
    lengths = [len(e.token_ids) for e in bpe.encode(cut)]
    found = [prompt for prompt, n in zip(cut, lengths, strict=True) if n <= 16][:50]
    assert len(found) == 50 and len({len(x) for x in found}) > 10
    return ["", *found]


@pytest.fixture(scope="module", params=[GptConfig, Gpt2Config], ids=["gpt", "gpt2"])
def pair(request, bpe, prompts, tmp_path_factory):
    """A model of random weights, its file, and a token that it often writes, as the end."""
    model = random_model(request.param, bpe)
    found = without_xla(Generator(model, bpe, max_new_tokens=3, batch_size=51))(prompts)
    counts = collections.Counter(i for texts in found for x in texts for i in x.token_ids)
    end = bpe.token(counts.most_common(1)[0][0])
    path = tmp_path_factory.mktemp("file") / "model.tflite"
    options = OPTIONS | {"fixed_lengths": [8, 4], "end_token": end}
    export_generator(model, path, bpe, DecoderExport("float32", **options))
    return model, path, end


@pytest.mark.parametrize(
    "search",
    [
        Greedy(),
        Beam(BEAMS, length_penalty=0.3, early_stopping=True, best=2),
        Beam(BEAMS, length_penalty=2.0, normalization="gnmt", early_stopping="never", best=BEAMS),
    ],
    ids=["greedy", "early", "never"],
)
def test_the_same_texts_as_keras(pair, bpe, prompts, search):
    model, path, end = pair
    how = {"max_new_tokens": STEPS, "end_token": end, "batch_size": len(prompts)}
    expected = without_xla(Generator(model, bpe, search, **how))(prompts)
    assert_same_texts(TextGenerator(path, search)(prompts), expected)
    ended = [x.ended for texts in expected for x in texts]
    assert 5 < sum(ended) < len(ended)


@pytest.fixture(scope="module")
def trained(bpe):
    """A model that has learned a little, and rows of ids."""
    sizes = SIZES | {"hidden_dim": 64, "intermediate_dim": 128, "dropout": 0.0}
    config = Gpt2Config(vocabulary_size=bpe.vocabulary_size, max_length=MAX_LENGTH, **sizes)
    model = build_model(config, "causal_lm")
    rows = [e.token_ids[:MAX_LENGTH] for e in bpe.encode(TEXTS)]
    ids, mask = padded(rows, MAX_LENGTH, 0)
    inputs = {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": mask}
    loss = train_a_little(model, inputs, ids[:, 1:], mask[:, 1:], 5e-3, 80)
    assert loss < 2.5
    return model, inputs, rows


def share_of_best_tokens(trained, path):
    """Of the tokens that the model finds most probable after each of a text's, those of a file."""
    model, inputs, rows = trained
    logits = model({name: x[:50] for name, x in inputs.items()})["logits"]
    decoder, same = CachedDecoder(path), []
    for row, best in zip(rows, np.argmax(logits, axis=-1), strict=False):
        found = [decoder.start(row[:3]), *(decoder.step([i], [0])[0] for i in row[3:])]
        same += list(np.argmax(found, axis=-1) == best[2 : len(row)])
    assert len(same) > 800
    return np.mean(same)


def test_99_of_100_tokens_in_8_bits_over_one_set_of_weights(trained, bpe, tmp_path):
    path = tmp_path / "model.tflite"
    export_generator(trained[0], path, bpe, DecoderExport(**OPTIONS))
    assert share_of_best_tokens(trained, path) >= 0.99
    tree = tree_of(path)
    keys = [s.signatureKey.decode() for s in tree.signatureDefs]
    assert sorted(keys) == ["decode", "decode_3", "prefill_16"]
    assert not any(code.customCode for code in tree.operatorCodes)
    weights = sum(int(np.prod(v.shape)) for v in trained[0].weights)
    held = sum(len(b.data) for b in tree.buffers if b.data is not None)
    assert weights < held < 1.3 * weights  # a byte each, the tied table once; and biases of four
    places = MAX_LENGTH + (BEAMS - 1) * STEPS
    graph = tree.subgraphs[0]
    shapes = {tuple(graph.tensors[i].shape) for i in graph.inputs}
    assert shapes == {(1, 1), (1,), (1, 2, places, 32)}


def test_the_document_names_what_is_in_a_file(pair):
    text = (pathlib.Path(__file__).parents[3] / "docs" / "mobile.md").read_text("utf-8")
    section = text[text.index("## Models that write") :]
    rows = dict(re.findall(r"^\| `(\w+)`.*?\| (`ids`.*?) \|", section, re.M))
    decoder = CachedDecoder(pair[1])
    for key, said in (("prefill_8", "prefill_16"), ("decode", "decode"), ("decode_3", "decode_4")):
        own = {name for name in decoder._inputs[key] if not is_cache(name)}
        assert set(re.findall(r"`(\w+)`", rows[said])) == own
    (code,) = re.findall(r"```kotlin\n(.*?)```", section, re.S)
    names = set(re.findall(r'"(\w+)"', code))
    assert names == {"ids", "place", "logits", "decode", "prefill_16"}
    caches = set(decoder._inputs["decode"]) - {"ids", "place"}
    assert caches == {f"{name}_{i}" for name in ("keys", "values") for i in range(2)}
    assert caches == set(decoder._outputs["prefill_4"])
    for name in caches:
        assert decoder._inputs["decode_3"][name] is decoder._outputs["decode"][name]


def test_4_bits(trained, bpe, tmp_path):
    path = tmp_path / "model.tflite"
    options = DecoderExport("int4", fixed_lengths=[8], **OPTIONS | {"beams": 1})
    export_generator(trained[0], path, bpe, options)
    assert 0.8 < share_of_best_tokens(trained, path) < 1
    assert TextGenerator(path)("the film")[0][0].text


def test_bad_input_is_refused(pair, bpe, tmp_path):
    model, path, _ = pair
    other = build_model(BertConfig(vocabulary_size=60, **SIZES), "masked_lm")
    recurrent = build_model(RecurrentConfig(60, "gru", 1, 16), "causal_lm")

    def export(model=model, **kwargs):
        export_generator(model, tmp_path / "m", bpe, DecoderExport(**OPTIONS | kwargs))

    for call, message in (
        (lambda: TextGenerator(path)(["a", "film " * 60]), r"^prompts\[1\] has .* tokens, which"),
        (lambda: TextGenerator(path)(["a", 5]), r"^prompts\[1\] is 5, not a string"),
        (lambda: TextGenerator(path, Beam(4)), r"^search=Beam\(beams=4.* with beams=3"),
        (lambda: TextGenerator(path, Beam(3), 11), "^max_new_tokens=11 is more than the 10 that"),
        (lambda: TextGenerator(path, None, 0), "^max_new_tokens=0 must be at least 1"),
        (lambda: TextGenerator(path, Sample()), r"^search=Sample\(.* give Greedy\(\) or a Beam"),
        (lambda: TextClassifier(path), "is of the kind generator; use .*TextGenerator"),
        (lambda: load_runner(path), "is of the kind generator; use .*TextGenerator"),
        (lambda: export(other), "needs the head 'causal_lm' of Gpt or Gpt2"),
        (lambda: export(recurrent), "needs the head 'causal_lm' of Gpt or Gpt2"),
        (lambda: export(quantization="static_int8"), "^quantization='static_int8' is not for"),
        (lambda: export(max_length=65), "^max_length=65 must lie between 3 and 64"),
        (lambda: export(fixed_lengths=[49]), "^fixed_lengths=49 must lie between 2 and 48"),
        (lambda: export(beams=0), "^beams=0 must lie between 1 and 200"),
        (lambda: export(max_new_tokens=49), "^max_new_tokens=49 must lie between 1 and 48"),
        (lambda: export(end_token="[END]"), r"lacks end_token='\[END\]'"),
    ):
        with pytest.raises(InputError, match=message):
            call()
    assert not (tmp_path / "m").exists()
