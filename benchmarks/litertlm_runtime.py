"""Pack a .tflite as a .litertlm and write with LiteRT-LM's runtime, for `benchmarks.litertlm`.

It needs litert-lm-builder and litert-lm-api alone, in an environment of its own, as their protobuf
is not TensorFlow's. Its argument is the folder that `benchmarks.litertlm` fills.
"""

import json
import pathlib
import sys


def packed(folder, end, max_length):
    """Write model.litertlm beside model.tflite and tokenizer.json; return its path."""
    from litert_lm_builder import litertlm_builder, litertlm_core
    from litert_lm_builder.runtime.proto import llm_metadata_pb2

    metadata = llm_metadata_pb2.LlmMetadata(max_num_tokens=max_length)
    metadata.llm_model_type.generic_model.SetInParent()
    metadata.stop_tokens.add().token_ids.ids.append(end)
    (folder / "metadata.pb").write_bytes(metadata.SerializeToString())
    builder = litertlm_builder.LitertLmFileBuilder()
    author = {"key": "Authors", "value": "tfnlp", "dtype": litertlm_builder.DType.STRING}
    builder.add_system_metadata(litertlm_builder.Metadata(**author))
    model_type = litertlm_builder.TfLiteModelType.PREFILL_DECODE
    builder.add_tflite_model(str(folder / "model.tflite"), model_type)
    builder.add_hf_tokenizer(str(folder / "tokenizer.json"))
    builder.add_llm_metadata(str(folder / "metadata.pb"))
    path = folder / "model.litertlm"
    with litertlm_core.open_file(str(path), "wb") as file:
        builder.build(file)
    return path


def main(folder):
    """Print how many prompts have the ids and the text of expected.json."""
    import litert_lm

    expected = json.loads((folder / "expected.json").read_text(encoding="utf-8"))
    max_length = expected["max_length"]
    path = packed(folder, expected["end"], max_length)
    engine = litert_lm.Engine(str(path), max_num_tokens=max_length)
    same_ids = same_texts = 0
    for prompt, ids, text in expected["texts"]:
        sampler = litert_lm.SamplerConfig(top_k=1, top_p=1.0, temperature=1.0, seed=0)
        session = engine.create_session(apply_prompt_template=False, sampler_config=sampler)
        session.run_prefill([prompt])
        found = session.run_decode().texts[0]
        session.close()
        same_ids += engine.tokenize(prompt) == ids
        # The runtime has no limit of new tokens but that of the model.
        same_texts += found.startswith(text)
    count = len(expected["texts"])
    print(f"of {count} prompts {same_ids} with the same ids, {same_texts} with the same text")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
