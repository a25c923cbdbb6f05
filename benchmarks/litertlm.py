"""A GPT-2 as a .litertlm in LiteRT-LM's runtime, beside Keras and distill.runtime.

    pip install litert-lm-builder litert-lm-api
    python -m benchmarks.litertlm --output_dir=runs/litertlm

A GPT-2 of 2 layers of width 32 with random weights continues 20 prompts greedily by 20 tokens, or
to its end token. docs/litertlm.md has what came out.
"""

import pathlib

from absl import flags

from recipes.shell import entry_point

FLAGS = flags.FLAGS
flags.DEFINE_string("output_dir", None, "Folder for the files.")
flags.mark_flag_as_required("output_dir")

STEPS = 20
SIZES = {"num_layers": 2, "num_heads": 2, "hidden_dim": 32, "max_length": 64}
KINDS = {"byte-level BPE": ("bpe", "gpt2"), "unigram": ("unigram", "albert")}
PIECES = ("the film", "결말은", "honestly ,", "배우들의", "a plot")
ENDS = (" is", " 아주", " really", "")


def main():
    entry_point.load_tensorflow()
    import keras

    from tests.grammar_corpus import make_reviews
    from tfnlp.models import Gpt2Config, build_model
    from tfnlp.text import train_tokenizer
    from tfnlp.utils.files import make_folder

    make_folder(FLAGS.output_dir)
    texts = [text for text, _ in make_reviews(200)]
    for name, kind in KINDS.items():
        keras.utils.set_random_seed(0)
        tokenizer = train_tokenizer(texts, kind[0], 400, kind[1])[0]
        config = Gpt2Config(tokenizer.vocabulary_size, initializer_range=0.6, **SIZES)
        model = build_model(config, "causal_lm")
        for quantization in ("float32", "int8"):
            print(f"{name}, {quantization}: {compare(model, tokenizer, quantization)}")


def compare(model, tokenizer, quantization):
    """Return in how many prompts LiteRT-LM agrees with Keras and distill.runtime, as text."""
    from distill.export import DecoderExport, export_generator, export_litertlm
    from distill.runtime import TextGenerator
    from tfnlp.generation import Generator

    path = pathlib.Path(FLAGS.output_dir) / "model.litertlm"
    options = DecoderExport(quantization, max_length=SIZES["max_length"])
    export_litertlm(model, path, tokenizer, options)
    export_generator(model, path.with_suffix(".tflite"), tokenizer, options)
    prompts = [piece + end for piece in PIECES for end in ENDS]
    ids, texts = written(path, prompts, [tokenizer.token(i) for i in tokenizer.special_token_ids])
    keras_texts = Generator(model, tokenizer, max_new_tokens=STEPS, batch_size=20)(prompts)
    file_texts = TextGenerator(path.with_suffix(".tflite"), max_new_tokens=STEPS)(prompts)
    same_ids = sum(a == tokenizer.encode_plain(b) for a, b in zip(ids, prompts, strict=True))
    same = [
        sum(a == b.text for a, (b,) in zip(texts, others, strict=True))
        for others in (keras_texts, file_texts)
    ]
    return (
        f"of {len(prompts)} prompts {same_ids} with the same ids, {same[0]} with the text of "
        f"Keras, {same[1]} with that of distill.runtime"
    )


def written(path, prompts, special_tokens):
    """Return the ids of prompts and what LiteRT-LM writes after them, without special tokens."""
    import litert_lm

    engine, texts = litert_lm.Engine(str(path)), []
    greedy = litert_lm.SamplerConfig(top_k=1, top_p=1.0, temperature=1.0, seed=0)
    for prompt in prompts:
        session = engine.create_session(
            apply_prompt_template=False, sampler_config=greedy, max_output_tokens=STEPS
        )
        session.run_prefill([prompt])
        (text,) = session.run_decode().texts
        session.close()
        for token in special_tokens:
            text = text.replace(token, "")
        texts.append(text)
    return [engine.tokenize(prompt) for prompt in prompts], texts


if __name__ == "__main__":
    entry_point.run(main)
