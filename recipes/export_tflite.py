"""Exports a fine-tuned or distilled model as a .tflite file for phones.

    python -m recipes.export_tflite --model_dir=runs/student/best --output_dir=runs/export

writes OUTPUT_DIR/model.tflite: inputs ids, mask and segment_ids of any length, with the
tokenizer, the labels and the settings inside. recipes.predict runs it, and distill.runtime: a
classifier as TextClassifier (MediaPipe does too), a tagger as TokenTagger, an answerer as
QuestionAnswerer, a regression as SentenceScorer, a chooser as EndingChooser.

    python -m recipes.export_tflite --model_dir=all-MiniLM-L6-v2 --output_dir=runs/export

with a folder of sentence-transformers, or with --pooling=mean, writes a file for sentence vectors,
for TextEmbedder of distill.runtime and of MediaPipe.

    python -m recipes.export_tflite --model_dir=runs/lm/best --output_dir=runs/export

with a GPT, a GPT-2 or a translator writes a file whose signatures read a prompt or a source and
generate token by token, for TextGenerator or Translator of distill.runtime. With --litertlm a
GPT or a GPT-2 becomes OUTPUT_DIR/model.litertlm, for LiteRT-LM.
"""

import pathlib

from absl import flags, logging

from distill import export, runtime
from recipes.flags import data_flags, dataclass_flags, generation_flags, model_flags
from recipes.shell import entry_point
from recipes.shell.command_line import (
    group,
    no_effect,
    read_numbers,
    refuse_beside,
    refuse_without,
)
from tfnlp import checkpoints, text
from tfnlp.configs import TEXT_CLASS_HEADS
from tfnlp.tasks.kinds import ANSWERER, EMBEDDER, TAGGER, kind_of
from tfnlp.utils.errors import InputError
from tfnlp.utils.files import check_absent, read_json, write_text

FLAGS = flags.FLAGS
model_flags.define_model_flag()
flags.DEFINE_string("output_dir", None, "Folder to write model.tflite into.")
flags.DEFINE_bool("overwrite", False, "Write over the files that are there.")
names = ("quantization", "max_length", "fixed_only", "pooling", "tokenizer_in_graph")
names += ("trainable_head", "token_vectors")
dataclass_flags.define(export.Export, *names, fixed_lengths=None)
flags.DEFINE_bool(
    "web", False, "Write a page that runs the file in a browser to OUTPUT_DIR/web, by npm."
)


def define_sample_flags(use, count, text):
    """Define the flags of a file of texts for a use; `text` is the help of the file's flag."""
    flags.DEFINE_string(f"{use}_text", None, text)
    flags.DEFINE_string(
        f"{use}_column", None, "Its column of texts; that of the task's recipe if not given."
    )
    flags.DEFINE_string(f"{use}_pair_column", None, "Its column of second texts, for pairs.")
    flags.DEFINE_integer(
        f"{use}_count", count, "Most of these texts to use, in a random sample.", 1
    )


define_sample_flags(
    "calibration",
    256,
    "File of texts to measure the ranges of activations on, for static_int8 of a model trained "
    "without --quantization_aware: in the format of the task's recipe, or a .txt.",
)


# Flags that only some models have, by their head.
WRITERS = ("causal_lm", "sequence_to_sequence")
OF_SEARCH = ("beams", "max_new_tokens", "cache_type")
OF_WRITERS = (*OF_SEARCH, "end_token", "litertlm")
with group("Check"):
    define_sample_flags(
        "check",
        200,
        "File of texts to compare the file with the float32 model on, in the format of the task's "
        "recipe or a .txt: agreement of labels, tags, answers or choices, correlation of numbers, "
        "or cosine of vectors. If not given, the --dev of the run of --model_dir; empty: no "
        "comparison. The figures are in the log, in OUTPUT_DIR/model_card.md and in the file. "
        "Agreement below 98 %, or a mean cosine or correlation below 0.99, gives a warning.",
    )
    flags.DEFINE_string(
        "golden",
        None,
        "File of texts, in the format of --check_text, for the tests of an app: their ids, "
        "LiteRT's outputs and the answers go to OUTPUT_DIR/golden.json.",
    )
with group("Generation"):
    dataclass_flags.define(export.DecoderExport, *OF_SEARCH)
    generation_flags.define_end_token_flag()
    flags.DEFINE_bool(
        "litertlm",
        False,
        "Write model.litertlm, for LiteRT-LM's runtime, in place of model.tflite; of a causal "
        "language model with a byte-level BPE or a unigram tokenizer (needs litert-lm-builder).",
    )
with group("Metadata"):
    dataclass_flags.define(export.Export, "name")
    flags.DEFINE_list("labels", None, "Names of the model's labels, in the order of their ids.")
    dataclass_flags.define(export.Credits)
    dataclass_flags.define(export.Export, "score_threshold")
flags.mark_flags_as_required(["output_dir"])


# Files beside model.tflite, and a folder.
CARD, GOLDEN, WEB = "model_card.md", "golden.json", "web"
OF_READERS = ("labels", "fixed_only", "score_threshold", "tokenizer_in_graph")
OF_READERS += ("check_text", "golden", "trainable_head", "token_vectors", "web")
# Heads that --pooling leaves in place: their checkpoints may lack the pooler of an encoder.
POOLED_HEADS = (*TEXT_CLASS_HEADS, TAGGER.head, ANSWERER.head, "masked_lm")


def check_flags():
    """Raise an InputError for conflicting flags."""
    read_numbers("fixed_lengths")
    refuse_without(["fixed_only"], "fixed_lengths")
    if FLAGS.calibration_text and FLAGS.quantization != "static_int8":
        raise no_effect("calibration_text", f"with quantization={FLAGS.quantization}")
    if FLAGS.golden and FLAGS.tokenizer_in_graph:
        raise no_effect("golden", "with tokenizer_in_graph=true, which takes no ids")
    if FLAGS.web:
        refuse_beside(["tokenizer_in_graph", "token_vectors"], "web")
    if FLAGS.litertlm:
        refuse_beside(OF_SEARCH, "litertlm")


def refuse_flags_of_others(head):
    """Raise an InputError for a given flag that does not apply to models with a head."""
    names = OF_READERS if head in WRITERS else OF_WRITERS
    if head == "sequence_to_sequence":
        names += ("max_length", "end_token", "litertlm")
    for name in names:
        if FLAGS[name].present:
            raise InputError(f"`{name}` is not for a model with the head {head!r}.")


def find_head():
    """Return the head to load the model with.

    Raises:
        InputError: if --pooling makes other vectors than a folder of sentence-transformers.
    """
    head = checkpoints.read_head(FLAGS.model_dir)
    if not FLAGS.pooling or head in POOLED_HEADS:
        return head
    if head != EMBEDDER.head:
        return None
    vectors = checkpoints.read_vector_head(FLAGS.model_dir)
    if vectors.pooling != (FLAGS.pooling,) or vectors.projections:
        layers = f" and {len(vectors.projections)} Dense" * bool(vectors.projections)
        raise InputError(
            f"model_dir={FLAGS.model_dir} has the pooling {','.join(vectors.pooling)}{layers}, "
            f"not pooling={FLAGS.pooling}; leave it out."
        )
    return head


def main():
    check_flags()
    name = "model.litertlm" if FLAGS.litertlm else "model.tflite"
    path = pathlib.Path(FLAGS.output_dir) / name
    if not FLAGS.overwrite:
        files = [path, *(path.with_name(name) for name in (CARD, GOLDEN))]
        files += [path.with_name(WEB)] * FLAGS.web
        check_absent(*files, advice="give `overwrite` to replace it, or another folder")
    head = find_head()
    entry_point.load_tensorflow()
    calibration = FLAGS.calibration_text and sample("calibration").flat_texts()
    tokenizer = text.load_tokenizer(FLAGS.model_dir)
    model = checkpoints.load_model(FLAGS.model_dir, head)
    refuse_flags_of_others(model.head)
    if model.head in WRITERS:
        export_writer(model, path, tokenizer)
    else:
        export_reader(model, path, tokenizer, calibration)


def export_reader(model, path, tokenizer, calibration):
    """Export a model that reads texts, with its card and its golden outputs."""
    settings = checkpoints.read_task_settings(FLAGS.model_dir)
    golden = FLAGS.golden and read_as_the_task(
        FLAGS.golden, FLAGS.check_column, FLAGS.check_pair_column
    )
    options = dataclass_flags.read(
        export.Export,
        max_length=FLAGS.max_length or settings.get("max_length", 128),
        pooling=None if model.head == EMBEDDER.head else FLAGS.pooling,
        calibration_text=calibration,
        check_inputs=check_inputs(),
        credits=dataclass_flags.read(export.Credits),
    )
    if FLAGS.web:
        kind = EMBEDDER if FLAGS.pooling else kind_of(model)
        export.check_web(kind, tokenizer)
        options = export.web_options(options, kind)
    labels = FLAGS.labels or checkpoints.read_labels(FLAGS.model_dir)
    differences = export.export_tflite(
        model, path, tokenizer, labels, options, task_settings=settings
    )
    log_file(path)
    names = ("name", "model_dir", "quantization", "pooling", "model_version", "author", "license")
    facts = {name.replace("_", " "): FLAGS[name].value for name in names}
    write_text(path.with_name(CARD), export.file_card(path, facts, differences))
    if golden:
        export.write_golden(path.with_name(GOLDEN), runtime.load_runner(path), golden)
        logging.info("Wrote %s.", path.with_name(GOLDEN))
    if FLAGS.web:
        export_page(path)


def export_page(path):
    """Write the folder that runs a file in a browser, and log how to open it."""
    folder = path.with_name(WEB)
    export.write_web_folder(path, folder, FLAGS.name)
    logging.info(
        "Wrote %s; run `python -m http.server -d %s` and open http://localhost:8000.",
        *(folder, folder),
    )


def export_writer(model, path, tokenizer):
    """Export a causal LM or a translator."""
    credits = dataclass_flags.read(export.Credits)
    options = dataclass_flags.read(export.DecoderExport, credits=credits)
    if model.head == "causal_lm":
        write = export.export_litertlm if FLAGS.litertlm else export.export_generator
        write(model, path, tokenizer, options)
        log_file(path)
        return
    export.export_translator(model, path, tokenizer, options=options)
    log_file(path)
    settings = runtime.read_files(path)[0]
    logging.info(
        "It reads sources of at most %d tokens, as --fixed_lengths has it, and writes at most "
        "%d, as --max_new_tokens has it.",
        settings["model_max_length"],
        settings["generation"]["max_new_tokens"],
    )


def log_file(path):
    """Log a written file and its size."""
    logging.info("Wrote %s, %.2f MB.", path, path.stat().st_size / 1e6)


def read_as_the_task(path, *columns):
    """Return the `Inputs` of a file as the model of --model_dir reads them."""
    return data_flags.read_inputs(path, None if FLAGS.pooling else FLAGS.model_dir, *columns)


def sample(use):
    """Return a sample of the `Inputs` of --calibration_text or --check_text.

    Args:
        use: "calibration" or "check".
    """
    path, *columns = (FLAGS[f"{use}_{x}"].value for x in ("text", "column", "pair_column"))
    return read_as_the_task(path, *columns).draw(FLAGS[f"{use}_count"].value)


def check_inputs():
    """Return the `Inputs` of --check_text or the run's dev set to check the file on, or None."""
    if FLAGS.check_text is not None:
        return sample("check") if FLAGS.check_text else None
    flags_path = pathlib.Path(FLAGS.model_dir).parent / "flags.json"
    run = read_json(flags_path) if flags_path.is_file() else {}
    if not run.get("dev") or not pathlib.Path(run["dev"]).is_file():
        logging.info("No dev set of a run is there to compare the file on; give --check_text.")
        return None
    first, *_ = run.get("text_columns") or [run.get("prompt_column") or run.get("text_column")]
    columns = first, run.get("pair_column")
    try:
        return read_as_the_task(run["dev"], *columns).draw(FLAGS.check_count)
    except InputError as e:
        logging.warning("The file is not compared with the model: %s", e)
        return None


if __name__ == "__main__":
    entry_point.run(main)
