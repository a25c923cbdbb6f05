"""Milliseconds per token of exported language models and translators, on one thread.

    python -m benchmarks.generation_tflite --output_dir=runs/generation_tflite

A GPT-2 of 4 layers of width 256 with 16,000 tokens continues a prompt of 32 tokens by 128. A
transformer of 3 layers of width 256 on each side with 8,000 tokens generates 32 tokens from a
source of 16. Both run in float32 and in int8, greedily, with 4 beams, and sampled with all that
cuts and constrains. The time of the prompt or source is that to the first token; the rest is
divided by the other tokens. Weights are random, and no text ends before its length. Figures are
medians over alternating rounds.
"""

import pathlib
import time

from absl import flags

from recipes.shell import entry_point

FLAGS = flags.FLAGS
flags.DEFINE_string("output_dir", None, "Folder for the files and generation_tflite.json.")
flags.DEFINE_integer("rounds", 5, "Rounds.", 1)
flags.mark_flag_as_required("output_dir")

BEAMS, NEVER = 4, -1
PROMPT, NEW, SOURCE, TARGET = 32, 128, 16, 32
SHAPE = {"num_heads": 4, "hidden_dim": 256, "intermediate_dim": 1024, "dropout": 0.0}


def main():
    entry_point.load_tensorflow()
    import numpy as np

    from tfnlp.utils.files import check_writable, make_folder, write_json

    folder = pathlib.Path(FLAGS.output_dir)
    check_writable(folder / "generation_tflite.json")
    make_folder(folder)
    cases = {}
    for quantization in ("float32", "int8"):
        cases |= generator_cases(folder, quantization)
        cases |= translator_cases(folder, quantization)
    found = {name: [] for name in cases}
    for _ in range(FLAGS.rounds + 1):  # the first warms up
        for name, run in cases.items():
            found[name].append(run())
    figures = {}
    for name, times in found.items():
        first, token = np.median(times[1:], axis=0)
        figures[name] = {"first_token_ms": first, "token_ms": token}
        print(f"{name:40} first token {first:7.2f} ms, then {token:6.3f} ms a token")
    write_json(folder / "generation_tflite.json", figures)


def generator_cases(folder, quantization):
    """Return {name: function} of the runs of a language model's file."""
    import numpy as np

    from distill.export.generation_signatures import generator_signatures
    from distill.runtime.cached_decoder import CachedDecoder
    from tfnlp.generation import CausalDecoder
    from tfnlp.models import Gpt2Config, build_model

    model = build_model(Gpt2Config(vocabulary_size=16000, num_layers=4, **SHAPE), "causal_lm")
    endpoints = generator_signatures(CausalDecoder(model), PROMPT + NEW, [PROMPT], BEAMS, NEW)
    path = written(folder, f"generator {quantization}", model, endpoints, quantization)
    decoder = CachedDecoder(path)
    prompt = np.random.default_rng(0).integers(5, 16000, PROMPT)
    return cases_of(f"GPT-2, {quantization}", decoder, lambda: decoder.start(prompt), NEW)


def translator_cases(folder, quantization):
    """Return {name: function} of the runs of a translator's file."""
    import numpy as np

    from distill.export.generation_signatures import translator_signatures
    from distill.runtime.cached_decoder import CachedDecoder
    from tfnlp.generation import EncoderDecoderCache
    from tfnlp.models import TransformerConfig, build_model

    sizes = SHAPE | {"vocabulary_size": 8000, "num_layers": 3, "max_length": 128}
    model = build_model(TransformerConfig(**sizes), "sequence_to_sequence")
    endpoints = translator_signatures(EncoderDecoderCache(model), [SOURCE, 64], BEAMS, TARGET)
    path = written(folder, f"translator {quantization}", model, endpoints, quantization)
    decoder = CachedDecoder(path)
    source = np.random.default_rng(0).integers(5, 8000, SOURCE)
    start = lambda: decoder.start_from(source, 0)  # noqa: E731
    return cases_of(f"translator, {quantization}", decoder, start, TARGET)


def written(folder, name, model, endpoints, quantization):
    """Write a file with these signatures, without a tokenizer; return its path."""
    from distill.export.conversion import to_tflite
    from tfnlp.quantization.fake_quantization import in_float

    path = folder / f"{name.replace(' ', '_')}.tflite"
    with in_float(model):
        path.write_bytes(to_tflite(model, endpoints, quantization))
    print(f"{name}: {path.stat().st_size / 1e6:.2f} MB")
    return path


def cases_of(name, decoder, start, steps):
    """Return {name: function} of the searches: ms to the first token, and per further token."""
    from tfnlp.generation.generation_settings import (
        Beam,
        Constraints,
        Greedy,
        Sample,
        SearchSettings,
    )
    from tfnlp.generation.numpy_search import TextSearch

    def timed(strategy, constraints=Constraints()):  # noqa: B008
        write = TextSearch(decoder, SearchSettings(strategy, constraints, steps, (NEVER,), 0))

        def run():
            times = []

            def timed_start():
                times.append(time.perf_counter())
                logits = start()
                times.append(time.perf_counter())
                return logits

            write(timed_start, [], lambda ids: "")
            began, first = times
            return 1e3 * (first - began), 1e3 * (time.perf_counter() - first) / (steps - 1)

        return run

    sample = Sample(temperature=0.8, top_k=50, top_p=0.95, min_p=0.02)
    rules = Constraints(repetition_penalty=1.1, no_repeat_ngram_size=3)
    return {
        f"{name}, greedy": timed(Greedy()),
        f"{name}, {BEAMS} beams": timed(Beam(BEAMS)),
        f"{name}, sampled": timed(Sample()),
        f"{name}, sampled and constrained": timed(sample, rules),
    }


if __name__ == "__main__":
    entry_point.run(main)
