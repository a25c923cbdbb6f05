"""Cached keys and values in int8 beside float32: time, memory and scores of a file that writes.

    python -m benchmarks.int8_caches --output_dir=runs/int8_caches

A GPT-2 of --num_layers layers of width 768 with 2,000 tokens and caches of 1,024 places; random
weights in int8, one thread. It reads a prompt of 33 tokens, then 50 tokens one by one, and takes
50 steps of 4 beams. Milliseconds are of the processor, the least of all repeats. The difference is
the mean one of the logits, as a share of their mean size.
"""

import pathlib
import time

from absl import flags

from recipes.shell import entry_point

FLAGS = flags.FLAGS
flags.DEFINE_string("output_dir", None, "Folder for the files and int8_caches.json.")
flags.DEFINE_integer("num_layers", 3, "Layers.", 1)
flags.DEFINE_integer("repeats", 5, "Repeats.", 1)
flags.mark_flag_as_required("output_dir")

VOCABULARY, PLACES, PIECE, STEPS, BEAMS = 2000, 1024, 32, 50, 4
WIDTH = {"num_heads": 12, "hidden_dim": 768, "intermediate_dim": 3072}


def main():
    entry_point.load_tensorflow()
    import keras
    import numpy as np

    from distill.runtime.cached_decoder import CachedDecoder
    from tfnlp.models import Gpt2Config, build_model
    from tfnlp.utils.files import make_folder, write_json

    folder = pathlib.Path(FLAGS.output_dir)
    make_folder(folder)
    keras.utils.set_random_seed(0)
    sizes = WIDTH | {"vocabulary_size": VOCABULARY, "num_layers": FLAGS.num_layers}
    model = build_model(Gpt2Config(**sizes, initializer_range=0.05), "causal_lm")
    figures, decoders, logits = {}, {}, {}
    for cache_type in ("float32", "int8"):
        path, megabytes = written(folder, model, cache_type)
        decoders[cache_type] = CachedDecoder(path)
        figures[cache_type] = {"caches_mb": megabytes}
    times = {cache_type: [] for cache_type in decoders}
    for _ in range(FLAGS.repeats):
        for cache_type, decoder in decoders.items():
            logits[cache_type], milliseconds = measured(decoder)
            times[cache_type].append(milliseconds)
    size = np.abs(logits["float32"]).mean()
    for cache_type, found in figures.items():
        least = np.min(times[cache_type], axis=0)
        found |= dict(zip(("prompt_ms", "token_ms", "beams_ms"), map(float, least), strict=True))
        difference = np.abs(logits[cache_type] - logits["float32"]).mean() / size
        found["difference"] = float(difference)
        numbers = ", ".join(f"{name} {value:.3f}" for name, value in found.items())
        print(f"{cache_type}: {numbers}")
    write_json(folder / "int8_caches.json", figures)


def written(folder, model, cache_type):
    """Write a file with caches of this type; return its path and the megabytes of the caches."""
    import numpy as np

    from distill.export.conversion import to_tflite
    from distill.export.generation_signatures import generator_signatures
    from distill.runtime.cached_decoder import DECODE, is_cache
    from tfnlp.generation import CausalDecoder
    from tfnlp.quantization.fake_quantization import in_float

    decoder, path = CausalDecoder(model), folder / f"{cache_type}.tflite"
    length = PLACES - (BEAMS - 1) * STEPS
    endpoints = generator_signatures(decoder, length, [PIECE], BEAMS, STEPS, cache_type)
    with in_float(model):
        path.write_bytes(to_tflite(model, endpoints, "int8"))
    caches = [spec for spec in endpoints[DECODE][1] if is_cache(spec.name)]
    return path, sum(np.prod(spec.shape) * spec.dtype.size for spec in caches) / 1e6


def measured(decoder):
    """Return the logits of all tokens, and milliseconds of the prompt, a token and a step."""
    import numpy as np

    ids = np.random.default_rng(0).integers(0, VOCABULARY, PIECE + 1 + STEPS)
    times, logits = [time.process_time()], [decoder.start(ids[: PIECE + 1])]
    times.append(time.process_time())
    logits += [decoder.step([token], [0])[0] for token in ids[PIECE + 1 :]]
    times.append(time.process_time())
    decoder.start(ids[: PIECE + 1])
    began = time.process_time()
    for token in ids[-STEPS:]:
        decoder.step([token] * BEAMS, np.arange(BEAMS))
    prompt, tokens = np.diff(times)
    beams = time.process_time() - began
    return np.stack(logits), 1e3 * np.array([prompt, tokens / STEPS, beams / STEPS])


if __name__ == "__main__":
    entry_point.run(main)
