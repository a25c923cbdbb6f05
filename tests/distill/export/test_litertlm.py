"""Files for LiteRT-LM: what is in them, and what its runtime writes."""

import sys
import zlib

import litert_lm_builder
import numpy as np
import pytest
import tokenizers
from ai_edge_litert.interpreter import Interpreter

from distill.export.litertlm import export_litertlm
from distill.export.options import Credits, DecoderExport
from tests.distill.searches import without_xla
from tests.grammar_corpus import make_reviews
from tfnlp.generation import Generator
from tfnlp.models import Gpt2Config, GptConfig, build_model
from tfnlp.text import train_tokenizer
from tfnlp.utils.errors import InputError

TEXTS = [text for text, _ in make_reviews(200)]
SIZES = {"num_layers": 2, "num_heads": 2, "hidden_dim": 16, "intermediate_dim": 32}
BPE = ("bpe", 300, "gpt2")
MAX_LENGTH, ENDS, STEPS = 24, ("<|endoftext|>", "a"), 6


def export(config, kind, path, **options):
    """Write the file of a model of random weights; return the model and its tokenizer."""
    tokenizer = train_tokenizer(TEXTS, *kind)[0]
    sizes = SIZES | {"vocabulary_size": tokenizer.vocabulary_size, "max_length": 32}
    model = build_model(config(**sizes, initializer_range=0.6), "causal_lm")
    options = DecoderExport("float32", MAX_LENGTH, (8,), **options)
    export_litertlm(model, path, tokenizer, options)
    return model, tokenizer


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    """A GPT, its tokenizer, and the folder of what its file holds."""
    folder = tmp_path_factory.mktemp("file")
    how = {"name": "GPT", "credits": Credits(author="Ann"), "end_token": ENDS}
    model, tokenizer = export(GptConfig, BPE, folder / "model.litertlm", **how)
    litert_lm_builder.unpack(str(folder / "model.litertlm"), str(folder / "parts"))
    return model, tokenizer, folder / "parts"


def part(folder, pattern):
    (path,) = folder.glob(pattern)
    return path


def test_a_file_holds_tokenizer_ends_and_credits(unpacked):
    _, tokenizer, folder = unpacked
    said = part(folder, "*.toml").read_text()
    assert '"Ann"' in said and '"GPT"' in said and "license" not in said
    packed = part(folder, "*.zlib").read_bytes()[8:]  # behind the size
    engine = tokenizers.Tokenizer.from_str(zlib.decompress(packed).decode())
    assert engine.encode(TEXTS[0]).ids == tokenizer.encode_plain(TEXTS[0])
    metadata = part(folder, "LlmMetadata*").read_text()
    ends = [f"ids: {tokenizer.token_id(end)}\n" for end in ENDS]
    for line in (f"max_num_tokens: {MAX_LENGTH}\n", "generic_model", *ends):
        assert line in metadata


def test_a_padded_prompt_gives_the_logits_of_keras(unpacked):
    """The last piece of the prompt is padded to 8 at place 20, beyond the maximum length."""
    model, tokenizer, folder = unpacked
    interpreter = Interpreter(str(part(folder, "*.tflite")))
    caches = {f"kv_cache_{x}_{i}" for x in "kv" for i in range(2)}
    signatures = interpreter.get_signature_list()
    assert set(signatures) == {"decode", "prefill_8"}
    for signature in signatures.values():
        assert set(signature["inputs"]) == {"tokens", "input_pos", *caches}
    prefill, decode = map(interpreter.get_signature_runner, ("prefill_8", "decode"))
    details = prefill.get_input_details()
    state = {name: np.zeros(details[name]["shape"], "float32") for name in caches}
    ids = np.array([tokenizer.encode_plain(" ".join(TEXTS[:4]))[:22]], "int32")
    for start, end in ((0, 8), (8, 16), (16, 20), (20, 21)):
        tokens, places = np.zeros((1, 8), "int32"), np.zeros(8, "int32")
        tokens[:, : end - start] = ids[:, start:end]
        places[: end - start] = np.arange(start, end)
        state = prefill(tokens=tokens, input_pos=places, **state)
    found = decode(tokens=ids[:, 21:], input_pos=np.array([21], "int32"), **state)["logits"]
    inputs = {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": 0 * ids + 1}
    np.testing.assert_allclose(found[0, 0], model(inputs)["logits"][0, -1], atol=1e-4)


@pytest.mark.parametrize("kind", [BPE, ("unigram", 200, "albert")], ids=["bpe", "unigram"])
def test_the_runtime_writes_what_keras_writes(kind, tmp_path):
    runtime = pytest.importorskip("litert_lm", reason="needs litert-lm-api")
    model, tokenizer = export(Gpt2Config, kind, tmp_path / "model.litertlm")
    prompts = ["a", *(" ".join(text.split()[:2]) for text in TEXTS[:20])]
    prompts = [x for x in prompts if len(tokenizer.encode_plain(x)) <= MAX_LENGTH - STEPS]
    assert len(prompts) > 12
    generator = Generator(model, tokenizer, max_new_tokens=STEPS, batch_size=len(prompts))
    engine = runtime.Engine(str(tmp_path / "model.litertlm"))
    greedy = runtime.SamplerConfig(top_k=1, top_p=1.0, temperature=1.0)
    how = {"apply_prompt_template": False, "max_output_tokens": STEPS, "sampler_config": greedy}
    for prompt, (text,) in zip(prompts, without_xla(generator)(prompts), strict=True):
        assert engine.tokenize(prompt) == tokenizer.encode_plain(prompt)
        session = engine.create_session(**how)
        session.run_prefill([prompt])
        (found,) = session.run_decode().texts
        for i in tokenizer.special_token_ids:  # which the runtime shows
            found = found.replace(tokenizer.token(i), "")
        assert found == text.text
        session.close()


def test_what_the_runtime_cannot_write_is_refused(tmp_path, monkeypatch):
    with pytest.raises(InputError, match="WordPieceTokenizer"):
        export(Gpt2Config, ("wordpiece", 200, "bert"), tmp_path / "model.litertlm")
    monkeypatch.setitem(sys.modules, "litert_lm_builder.runtime.proto.llm_metadata_pb2", None)
    with pytest.raises(InputError, match="litert-lm-builder"):
        export(Gpt2Config, BPE, tmp_path / "model.litertlm")
    assert not any(tmp_path.iterdir())
