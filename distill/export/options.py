"""Options of exported files, without TensorFlow."""

import dataclasses

from distill.compression.compression_settings import QUANTIZATIONS
from tfnlp.configs import POOLING_MODES
from tfnlp.pipelines.inputs import Inputs
from tfnlp.utils.settings import setting


@dataclasses.dataclass(frozen=True)
class Credits:
    """Version, such as "1.2", author and license of a model; a field is left out where None."""

    version: str | None = setting(None, "Version of the model.", flag="model_version")
    author: str | None = setting(None, "Author of the model.")
    license: str | None = setting(None, "License of the model.")


@dataclasses.dataclass(frozen=True)
class FileOptions:
    """Options of any file; those without a line here are described by the help of their fields.

    Args:
        fixed_lengths: at most `max_length`. Of a causal LM and a translator 16 and 64 where there
            are none; the longest of a translator is the maximum length.
        credits: `Credits`, or None.
    """

    quantization: str = setting(
        "int8",
        "float32, float16: weights in 32 or 16 bits; int8: in 8, with dynamic ranges of "
        "activations; static_int8: with fixed ranges; int4, int4_block32: in 4, with a scale per "
        "channel or per 32 weights (needs litert-quantizer).",
        choices=tuple(QUANTIZATIONS),
    )
    max_length: int | None = setting(
        None,
        "Longest input in tokens; if not given that of the training, or 128. With a causal "
        "language model prompt and text together; 256 if not given.",
        low=3,
    )
    fixed_lengths: tuple[int, ...] = setting(
        (),
        "Lengths with a signature each, such as 32,64,128, for GPU and NPU compilers. With models "
        "that generate, tokens of a prompt or source that are read at a time, such as 16,64.",
    )
    name: str = setting("text model", "Name of the model.")
    credits: Credits | None = None


@dataclasses.dataclass(frozen=True)
class Export(FileOptions):
    """Options of the file of a model that reads texts, see `export_tflite`.

    Each of `fixed_lengths` adds a signature over the same weights, "run_32" for 32, with inputs
    (1, 32). With `fixed_only` the file has these alone, and the longest is "run", the maximum
    length. MediaPipe takes files with one signature. `max_length` is the model's positions, or
    512, or any number for static vectors, where None.

    Args: those of `FileOptions`, and
        pooling: for a file that outputs text embeddings, whatever the head of the model; or None.
        tokenizer_in_graph: whether the file takes `text`, (1,) strings; it then needs TensorFlow
            Text's kernels to run, see `distill.export.text_in_graph`.
        calibration_text: strings, or (text, second text) pairs, such as a question and its
            context, from which "static_int8" calibrates the ranges of activations; those of
            quantisation-aware training where None.
        check_inputs: `Inputs` on which the file is compared with the model in float32, see
            `distill.export.fidelity.compare`; None for no comparison.
    """

    fixed_only: bool = setting(False, "Leave out the signature for any length.")
    pooling: str | None = setting(
        None,
        "Return a vector of each text, of its tokens' states, not the head's output; that of a "
        "folder of sentence-transformers if not given.",
        choices=POOLING_MODES,
    )
    tokenizer_in_graph: bool = setting(
        False, "Take strings, not ids; for WordPiece classifiers, with TensorFlow Text."
    )
    trainable_head: bool = setting(
        False,
        "Add signatures by which the last layer of a classifier learns on the device, also new "
        "labels (docs/mobile.md).",
    )
    token_vectors: bool = setting(
        False, "Return a vector of each token too, of an embedder, for late interaction."
    )
    calibration_text: list | None = None
    check_inputs: Inputs | None = None
    score_threshold: float | None = setting(
        None, "Probability below which MediaPipe leaves out a class.", low=0, high=1
    )


@dataclasses.dataclass(frozen=True)
class DecoderExport(FileOptions):
    """Options of the file of a model that generates, see `export_generator`.

    It has no "static_int8". `max_length` is the model's positions, but at most 256, where None.
    Caches have places for `max_new_tokens`, of a causal LM those of a beam search.
    """

    name: str = "language model"
    beams: int = setting(4, "Beams of the search; 1: greedy search only.", low=1)
    max_new_tokens: int | None = setting(None, "Most new tokens; 64 or fewer if not given.", low=1)
    cache_type: str = setting(
        "float32",
        "Numbers of cached keys and values: float32, or int8 with a scale per head and position.",
        choices=("float32", "int8"),
    )
    end_token: str | tuple | None = setting(
        None, "Token that ends a text; the separator of documents if not given."
    )
