"""A GPT-2 as a .litertlm, which LiteRT-LM's runtime runs, beside Keras.

    python -m venv litertlm && litertlm/bin/pip install litert-lm-api litert-lm-builder
    python -m benchmarks.litertlm --python=litertlm/bin/python --output_dir=runs/litertlm

A GPT-2 of 2 layers of width 32 with random weights continues 20 prompts greedily by 20 tokens, or
to its end token. LiteRT-LM looks for the names that `signature` gives. docs/litertlm.md has what
came out.
"""

import json
import pathlib
import subprocess
import sys

from absl import flags

from recipes.shell import entry_point

FLAGS = flags.FLAGS
flags.DEFINE_string("python", sys.executable, "Python with litert-lm-api and litert-lm-builder.")
flags.DEFINE_string("output_dir", None, "Folder for the files.")
flags.mark_flag_as_required("output_dir")

LAYERS, HEADS, SIZE, PLACES, STEPS = 2, 2, 16, 64, 20
PIECES = ("the film", "결말은", "honestly ,", "배우들의", "a plot")
ENDS = (" is", " 아주", " really", "")


def main():
    entry_point.load_tensorflow()
    import keras

    from distill.export.conversion import to_tflite
    from tests.grammar_corpus import make_reviews
    from tfnlp.generation import CausalDecoder, Generator
    from tfnlp.models import Gpt2Config, build_model
    from tfnlp.quantization.fake_quantization import in_float
    from tfnlp.text import train_tokenizer
    from tfnlp.utils.files import make_folder

    folder = pathlib.Path(FLAGS.output_dir)
    make_folder(folder)
    keras.utils.set_random_seed(0)
    tokenizer = train_tokenizer([text for text, _ in make_reviews(200)], "bpe", 400, "gpt2")[0]
    sizes = {"num_layers": LAYERS, "num_heads": HEADS, "hidden_dim": HEADS * SIZE}
    sizes |= {"vocabulary_size": tokenizer.vocabulary_size, "max_length": PLACES}
    model = build_model(Gpt2Config(**sizes, initializer_range=0.6), "causal_lm")
    decoder = CausalDecoder(model)
    endpoints = {"prefill_16": signature(decoder, 16, False), "decode": signature(decoder, 1)}
    with in_float(model):
        (folder / "model.tflite").write_bytes(to_tflite(model, endpoints, "float32"))
    (folder / "tokenizer.json").write_text(tokenizer.to_json(), encoding="utf-8")
    generator = Generator(model, tokenizer, max_new_tokens=STEPS, batch_size=20)
    prompts = [piece + end for piece in PIECES for end in ENDS]
    texts = [text for (text,) in generator(prompts)]
    expected = {"end": generator.settings.ends[0], "max_length": PLACES}
    expected["texts"] = [
        (prompt, tokenizer.encode_plain(prompt), text.text.rstrip("\ufffd"))
        for prompt, text in zip(prompts, texts, strict=True)
    ]
    (folder / "expected.json").write_text(json.dumps(expected), encoding="utf-8")
    runtime = pathlib.Path(__file__).with_name("litertlm_runtime.py")
    subprocess.run([FLAGS.python, runtime, folder], check=True)


def signature(decoder, length, gives_logits=True):
    """Return the function and the specs of a signature under the names of LiteRT-LM."""
    import tensorflow as tf

    from tfnlp.generation.key_value_cache import Cached

    def run(tokens, input_pos, *caches):
        seen = tf.range(PLACES)[None, None] <= input_pos[None, :, None]
        state = Cached(caches[0::2], caches[1::2], None, None)
        x, state = decoder._read(tokens, input_pos[None], seen, state, input_pos[0])
        pairs = zip(state.keys, state.values, strict=True)
        tensors = [tensor for pair in pairs for tensor in pair]
        outputs = {spec.name: x for spec, x in zip(specs[2:], tensors, strict=True)}
        return outputs | ({"logits": decoder._logits(x)} if gives_logits else {})

    specs = [tf.TensorSpec((1, length), "int32", name="tokens")]
    specs.append(tf.TensorSpec((length,), "int32", name="input_pos"))
    for layer in range(LAYERS):
        for name in (f"kv_cache_k_{layer}", f"kv_cache_v_{layer}"):
            specs.append(tf.TensorSpec((1, HEADS, PLACES, SIZE), "float32", name=name))
    return run, specs


if __name__ == "__main__":
    entry_point.run(main)
