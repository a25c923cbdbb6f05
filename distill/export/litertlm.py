"""Export of causal LMs to .litertlm files, for LiteRT-LM's runtime.

Such a file holds a .tflite, its tokenizer and metadata; litert-lm-builder writes it.
"""

import pathlib
import tempfile

import tokenizers
from tokenizers import decoders, models

from distill.export.conversion import to_tflite
from distill.export.generation_export import check_causal_lm
from distill.export.generation_signatures import litertlm_signatures
from distill.export.options import Credits, DecoderExport
from tfnlp.quantization.fake_quantization import in_float
from tfnlp.utils.errors import InputError, needs_packages
from tfnlp.utils.files import atomic_replace


def export_litertlm(model, path, tokenizer, options=None):
    """Write a causal LM as a .litertlm file, which continues prompts in LiteRT-LM's runtime.

    The runtime searches and keeps the caches: `beams`, `max_new_tokens` and `cache_type` of the
    options have no effect.

    Args:
        model: a GPT or a GPT-2 with the head "causal_lm".
        path: of the file.
        tokenizer: the model's, a byte-level BPE or a unigram tokenizer.
        options: `DecoderExport`; its defaults where None.

    Raises:
        InputError: as `export_generator`, for another tokenizer, and if litert-lm-builder is not
            installed.
    """
    with needs_packages("A .litertlm file", "litert-lm-builder"):
        from litert_lm_builder.runtime.proto.llm_metadata_pb2 import LlmMetadata
    options = options or DecoderExport()
    decoder, ends, max_length, lengths = check_causal_lm(model, tokenizer, options)
    tokenizer_json = _tokenizer_json(tokenizer)
    endpoints = litertlm_signatures(decoder, max_length, lengths)
    with in_float(model):
        content = to_tflite(model, endpoints, options.quantization)
    metadata = LlmMetadata(
        max_num_tokens=max_length,
        stop_tokens=[{"token_ids": {"ids": [end]}} for end in ends],
        llm_model_type={"generic_model": {}},
    )
    credits = {"name": options.name} | vars(options.credits or Credits())
    _pack(path, content, tokenizer_json, metadata.SerializeToString(), credits)


def _tokenizer_json(tokenizer):
    """Return the tokenizer.json as bytes, with a decoder that keeps the space of a first token.

    Raises:
        InputError: if the vocabulary does not tell which tokens begin with a space.
    """
    engine = tokenizers.Tokenizer.from_str(tokenizer.to_json())
    if isinstance(engine.model, models.Unigram):
        engine.decoder = decoders.Replace("▁", " ")
    elif not isinstance(engine.model, models.BPE):
        raise InputError(
            f"LiteRT-LM loses the space before the first token of a {type(tokenizer).__name__}; "
            "a .litertlm file is for byte-level BPE and unigram tokenizers."
        )
    return engine.to_str().encode()


def _pack(path, model, tokenizer_json, metadata, credits):
    """Write the container, whose parts are bytes, with the credits that are not None."""
    import litert_lm_builder as litertlm

    builder = litertlm.LitertLmFileBuilder()
    for key, value in credits.items():
        if value is not None:
            entry = litertlm.Metadata(key, value, litertlm.DType.STRING)
            builder.add_system_metadata(entry)
    with tempfile.TemporaryDirectory() as folder, atomic_replace(path) as temporary:

        def file(name, content):
            pathlib.Path(folder, name).write_bytes(content)
            return f"{folder}/{name}"

        part = litertlm.TfLiteModelType.PREFILL_DECODE
        builder.add_tflite_model(file("model.tflite", model), part)
        builder.add_hf_tokenizer(file("tokenizer.json", tokenizer_json))
        builder.add_llm_metadata(file("metadata.pb", metadata))
        with open(temporary, "wb") as stream:
            builder.build(stream)
