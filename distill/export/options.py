"""Options of exported files."""

import dataclasses

from distill.export.metadata import Credits
from tfnlp.pipelines.inputs import Inputs


@dataclasses.dataclass(frozen=True)
class Export:
    """Options of the file of a model that reads texts, see `export_tflite`.

    Each of `fixed_lengths` adds a signature over the same weights, "run_32" for 32, with inputs
    (1, 32), as compilers for GPUs and NPUs need. With `fixed_only` the file has these alone, and
    the longest is "run". MediaPipe takes files with one signature.

    Args:
        quantization: "float32"; "float16" weights; "int8", weights in 8 bits and activations
            quantised at run time (dynamic range); "static_int8", products of 8-bit integers
            alone; "int4" and "int4_block32", weights in 4 bits, with a scale for each channel
            or for each 32. See `distill.compression.file_quantization`.
        max_length: the most ids of an input; the model's positions, or 512, where None.
        fixed_lengths: lengths with a signature each, at most `max_length`.
        fixed_only: whether to leave out the signature of any length; the longest fixed one is
            then the maximum length.
        pooling: "mean" of the tokens' states or the "first" one, for a file that outputs text
            embeddings, whatever the head of the model; or None.
        tokenizer_in_graph: whether the file takes `text`, (1,) strings, in place of ids. For a
            classifier with WordPiece; it then needs TensorFlow Text's kernels to run, see
            `distill.export.text_in_graph`.
        calibration_text: strings, or (text, second text) pairs, such as a question and its
            context, from which "static_int8" calibrates the ranges of activations; those of
            quantisation-aware training where None.
        check_inputs: `Inputs` on which the file is compared with the model in float32, see
            `distill.export.fidelity.compare`; None for no comparison.
        name: of the model, in the metadata.
        credits: `Credits`, or None.
        score_threshold: probability below which MediaPipe leaves out a class, for a classifier.
    """

    quantization: str = "int8"
    max_length: int | None = None
    fixed_lengths: tuple = ()
    fixed_only: bool = False
    pooling: str | None = None
    tokenizer_in_graph: bool = False
    calibration_text: list | None = None
    check_inputs: Inputs | None = None
    name: str = "text model"
    credits: Credits | None = None
    score_threshold: float | None = None


@dataclasses.dataclass(frozen=True)
class DecoderExport:
    """Options of the file of a model that generates, see `export_generator`.

    Args:
        quantization: "float32", "float16", "int8", "int4" or "int4_block32", see `Export`.
        max_length: of a causal LM, the most tokens of a prompt and its continuation together; the
            model's positions, but at most 256, where None.
        fixed_lengths: of a causal LM, lengths of the chunks in which prompts are read; of a
            translator, lengths of sources, the longest of which is the maximum; 16 and 64 where
            there are none.
        beams: K of beam search; 1 for greedy search alone.
        max_new_tokens: the most new tokens, of a causal LM those of a beam search, for which the
            caches have places; 64, or what the model has positions for if that is less, where
            None.
        end_token: of a causal LM, the token that ends a text; the document separator where None.
        name: of the model, in the metadata.
        credits: `Credits`, or None.
    """

    quantization: str = "int8"
    max_length: int | None = None
    fixed_lengths: tuple = ()
    beams: int = 4
    max_new_tokens: int | None = None
    end_token: str | None = None
    name: str = "language model"
    credits: Credits | None = None
