"""Exported language models: the same tokens as Keras writes, token by token with caches."""

import collections
import dataclasses
import pathlib
import re

import numpy as np
import pytest

from distill.export.generation_export import export_generator
from distill.export.options import DecoderExport
from distill.runtime import Beam, Constraints, Greedy, Sample, TextGenerator, load_runner
from distill.runtime.cached_decoder import CachedDecoder, is_cache
from tests.distill.expected import constants_of, tree_of
from tests.distill.searches import assert_same_texts, without_xla
from tests.generation.conftest import no_xla  # noqa: F401  a fixture
from tests.grammar_corpus import make_reviews
from tfnlp.generation import Generator
from tfnlp.models import Gpt2Config, GptConfig, RecurrentConfig, build_model
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


def test_samples_with_constraints_and_stop_strings_are_those_of_keras(pair, bpe, prompts):
    model, path, end = pair
    how = {"max_new_tokens": STEPS, "stop_strings": ["e", "t "]}
    how["constraints"] = Constraints(1.2, no_repeat_ngram_size=2, forbidden=(1, (2, 3)))
    search = Sample(temperature=0.8, top_k=100, top_p=0.95, min_p=0.01, seed=3, texts=2)
    generator = Generator(model, bpe, search, **how, end_token=end, batch_size=2 * len(prompts))
    expected = without_xla(generator)(prompts)
    found = TextGenerator(path, search, **how)(prompts)
    assert_same_texts(found, expected)
    texts = [text for texts in found for text in texts]
    assert len({text.token_ids for text in texts}) > 60
    stopped = [bpe.decode(text.token_ids) != text.text for text in texts]
    assert sum(stopped) > 5 and sum(text.ended for text in texts) > sum(stopped) + 5
    other = dataclasses.replace(search, seed=4)
    assert TextGenerator(path, other, **how)(prompts[:3]) != found[:3]


def test_tokens_are_shown_while_they_are_written(pair, bpe, prompts, no_xla):  # noqa: F811
    """In Keras, where a step is a call then, as from a file."""
    model, path, end = pair
    search, how = Sample(top_p=0.9, seed=1), {"max_new_tokens": STEPS, "stop_strings": "e"}
    generator = Generator(model, bpe, search, **how, end_token=end, batch_size=8)
    expected = without_xla(generator)(prompts[:8])
    for write in (generator, TextGenerator(path, search, **how)):
        shown = collections.defaultdict(list)
        texts = write(prompts[:8], on_token=lambda n, *token: shown[n].append(token))  # noqa: B023
        assert_same_texts(texts, expected)
        for number, (text,) in enumerate(texts):
            ids, pieces = zip(*shown[number], strict=True)
            assert "".join(pieces) == text.text
            assert ids[: len(text.token_ids)] == text.token_ids


def test_a_file_with_several_end_tokens(pair, bpe, prompts, tmp_path):
    (model, _, end), path = pair, tmp_path / "model.tflite"
    ends = [end, "<|endoftext|>", bpe.token(20)]
    export_generator(model, path, bpe, DecoderExport("float32", **OPTIONS, end_token=ends))
    generator = Generator(model, bpe, Beam(BEAMS), None, STEPS, len(prompts), ends)
    found = TextGenerator(path, Beam(BEAMS))(prompts)
    assert_same_texts(found, without_xla(generator)(prompts))


def test_tokens_in_8_bits_over_one_set_of_weights(pair, bpe, tmp_path):
    (model, whole, _), path = pair, tmp_path / "model.tflite"
    export_generator(model, path, bpe, DecoderExport(**OPTIONS))
    rows = [e.token_ids[:MAX_LENGTH] for e in bpe.encode(TEXTS[:30])]
    decoder, same = CachedDecoder(path), []
    for row in rows:
        ids = np.array([row])
        inputs = {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": 0 * ids + 1}
        best = np.argmax(model(inputs)["logits"][0], axis=-1)
        found = [decoder.start(row[:3]), *(decoder.step([i], [0])[0] for i in row[3:])]
        same += list(np.argmax(found, axis=-1) == best[2:])
    assert len(same) > 300 and np.mean(same) > 0.9
    tree = tree_of(path)
    keys = [s.signatureKey.decode() for s in tree.signatureDefs]
    assert sorted(keys) == ["decode", "decode_3", "prefill_16"]
    assert not any(code.customCode for code in tree.operatorCodes)
    weights = sum(int(np.prod(v.shape)) for v in model.weights)
    assert 4 * weights < constants_of(whole) < 4.2 * weights  # the tied table once
    assert constants_of(path) < 0.6 * constants_of(whole)  # and constants
    places = MAX_LENGTH + (BEAMS - 1) * STEPS
    graph = tree.subgraphs[0]
    shapes = {tuple(graph.tensors[i].shape) for i in graph.inputs}
    assert shapes == {(1, 1), (1,), (1, 2, places, 8)}


def test_caches_in_8_bits_hardly_change_the_scores(pair, bpe, tmp_path):
    (model, whole, _), path = pair, tmp_path / "model.tflite"
    options = OPTIONS | {"fixed_lengths": [8, 4], "cache_type": "int8"}
    export_generator(model, path, bpe, DecoderExport("float32", **options))
    decoders = CachedDecoder(whole), CachedDecoder(path)
    for row in [e.token_ids[:MAX_LENGTH] for e in bpe.encode(TEXTS[:20])]:
        scores = []
        for decoder in decoders:
            first = [decoder.start(row[:12]), *(decoder.step([i], [0])[0] for i in row[12:])]
            beams = decoder.step(list(row[:BEAMS]), [0] * BEAMS)
            scores.append(np.stack([*first, *beams]))
        assert np.abs(scores[0] - scores[1]).mean() < 0.03 * np.abs(scores[0]).mean()
    details = decoders[1]._model.get_input_tensor_details("decode")
    shapes = {name: tuple(detail["shape"]) for name, detail in details.items()}
    places = MAX_LENGTH + (BEAMS - 1) * STEPS
    assert shapes["keys_0"] == (1, 2, places, 8) and shapes["values_1"] == (1, 2, 8, places)
    assert shapes["keys_scales_1"] == shapes["values_scales_0"] == (1, 2, 1, places)


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


def test_bad_input_is_refused(pair, bpe, tmp_path):
    model, path, _ = pair
    recurrent = build_model(RecurrentConfig(60, "gru", 1, 16), "causal_lm")

    def export(model=model, **kwargs):
        export_generator(model, tmp_path / "m", bpe, DecoderExport(**OPTIONS | kwargs))

    for call, message in (
        (lambda: TextGenerator(path)(["a", "film " * 60]), r"prompts\[1\]"),
        (lambda: TextGenerator(path, Beam(4)), "beams=3"),
        (lambda: TextGenerator(path, Beam(3), 11), "max_new_tokens=11"),
        (lambda: TextGenerator(path, constraints=Constraints(forbidden=(400,))), "id 400"),
        (lambda: TextGenerator(path, Beam(3), stop_strings=["a"]), "stop_strings"),
        (lambda: load_runner(path), "TextGenerator"),
        (lambda: export(recurrent), "Gpt2"),
        (lambda: export(quantization="static_int8"), "quantization='static_int8'"),
        (lambda: export(max_length=65), "max_length=65"),
        (lambda: export(fixed_lengths=[49]), "fixed_lengths=49"),
        (lambda: export(beams=0), "beams=0"),
        (lambda: export(max_new_tokens=49), "max_new_tokens=49"),
        (lambda: export(end_token="[END]"), "end_token"),
    ):
        with pytest.raises(InputError, match=message):
            call()
    assert not (tmp_path / "m").exists()
