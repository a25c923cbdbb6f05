"""Small random models under the names that the pages give theirs, so that their snippets run."""

import shutil

from distill.export.generation_export import export_generator, export_translator
from distill.export.options import DecoderExport
from distill.export.tflite import export_tflite
from tfnlp.checkpoints import save_model
from tfnlp.models import BertConfig, Gpt2Config, TransformerConfig, build_model
from tfnlp.text import load_tokenizer, read_examples, train_tokenizer

SMALL = {"num_heads": 2, "hidden_dim": 16, "intermediate_dim": 32, "max_length": 128}
# {folder: (head, classes, labels, task settings)}
TASKS = {
    "runs/teacher/best": ("classifier", 2, ["negative", "positive"], None),
    "runs/entities/best": ("tagger", 3, ["O", "B-place", "I-place"], None),
    "runs/answers/best": ("answerer", None, None, {"max_question_length": 32}),
    "runs/numbers/best": ("classifier", 1, ["score"], None),
    "runs/choices/best": ("chooser", None, None, None),
    "runs/search/best": ("embedder", None, None, None),
}


def write_stand_ins(folder):
    """Write the folders and files that the pages directly in docs/ read.

    Args:
        folder: a `pathlib.Path` that has the demo's files in demo/.
    """
    for name in ("train", "dev"):
        lines = (folder / f"demo/data/{name}.tsv").read_text("utf-8").splitlines(True)
        (folder / f"{name}.tsv").write_text("".join(lines[:65]), "utf-8")
    shutil.copytree(folder / "demo/MiniLM-L6", folder / "MiniLM-L6")
    tokenizer = load_tokenizer(folder / "MiniLM-L6")
    for name, (head, classes, labels, settings) in TASKS.items():
        config = BertConfig(tokenizer.vocabulary_size, num_layers=4, **SMALL)
        model = build_model(config, head, classes)
        save_model(model, folder / name, labels, tokenizer, settings)
        if name == "runs/teacher/best":
            export_tflite(model, folder / "model.tflite", tokenizer, labels)
    _write_language_models(folder)


def _write_language_models(folder):
    texts = read_examples(folder / "train.tsv").texts
    bpe = train_tokenizer(texts, "bpe", 400, "gpt2")[0]
    model = build_model(Gpt2Config(bpe.vocabulary_size, num_layers=2, **SMALL), "causal_lm")
    save_model(model, folder / "gpt2", tokenizer=bpe)
    export_generator(model, folder / "lm.tflite", bpe, DecoderExport(beams=4))
    bpe = train_tokenizer(texts, "bpe", 400, "roberta")[0]
    ids = {"pad_token_id": bpe.pad_token_id, "start_token_id": bpe.pad_token_id}
    ids["end_token_id"] = bpe.token_id("</s>")
    config = TransformerConfig(bpe.vocabulary_size, num_layers=1, **SMALL, **ids)
    model = build_model(config, "sequence_to_sequence")
    save_model(model, folder / "opus-mt-en-de", tokenizer=bpe)
    export_translator(model, folder / "en_de.tflite", bpe, options=DecoderExport(beams=4))
