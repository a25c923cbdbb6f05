"""Exports a fine-tuned or distilled model as a .tflite file for phones.

    python -m recipes.export_tflite --model_dir=runs/student/best --output_dir=runs/export

writes OUTPUT_DIR/model.tflite: inputs ids, mask and segment_ids of any length, with the
tokenizer, the labels and the settings inside. recipes.predict runs it, and distill.runtime: a
classifier as TextClassifier (MediaPipe does too), a tagger as TokenTagger, an answerer as
QuestionAnswerer, a regression as SentenceScorer, a chooser as EndingChooser.

    python -m recipes.export_tflite --model_dir=MiniLM-L6 --pooling=mean --output_dir=runs/export

writes one that gives sentence vectors, for TextEmbedder of distill.runtime and of MediaPipe.

    python -m recipes.export_tflite --model_dir=runs/lm/best --output_dir=runs/export

of a GPT, a GPT-2 or a translator writes one whose signatures read a prompt or a source, and write
token by token, for TextGenerator or Translator of distill.runtime.
"""

import pathlib

from absl import flags, logging

from distill import export, runtime
from recipes import common
from recipes.command_line import group
from tfnlp import checkpoints, text
from tfnlp.utils.errors import InputError
from tfnlp.utils.files import check_writable, read_json, write_text

FLAGS = flags.FLAGS
flags.DEFINE_string("model_dir", None, "Folder of the model, or its name on the Hub.")
flags.DEFINE_string("output_dir", None, "Folder to write model.tflite into.")
flags.DEFINE_enum(
    "quantization",
    "int8",
    ["float32", "float16", "int8", "static_int8", "int4", "int4_block32"],
    "float32, float16: weights of so many bits; int8: 8, activations quantised as they come; "
    "static_int8: both in 8, of fixed ranges; int4, int4_block32: weights in 4, a scale for each "
    "channel or for 32 (tfnlp[quantizer]).",
)
flags.DEFINE_string(
    "calibration_text",
    None,
    "File of texts that show the ranges of activations, for static_int8 of a model that was not "
    "trained with --quantization_aware: as the task's recipe reads, or a .txt.",
)
flags.DEFINE_string(
    "calibration_column", None, "Its column of texts; what the task's recipe expects if not given."
)
flags.DEFINE_string("calibration_pair_column", None, "Its column of second texts, for pairs.")
flags.DEFINE_integer("calibration_count", 256, "The most of these texts to use, drawn.", 1)
flags.DEFINE_integer(
    "max_length",
    None,
    "Longest input in tokens; the training's, or 128, if not given. Of a language model prompt "
    "and text together, 256 if not given.",
    3,
)
flags.DEFINE_list(
    "fixed_lengths",
    [],
    "Lengths with a signature of their own, such as 32,64,128, as GPU and NPU compilers need; of "
    "what writes, how many tokens of a prompt, or a source, are read at a time (16,64).",
)
flags.DEFINE_bool("fixed_only", False, "Leave out the signature that takes any length.")
flags.DEFINE_enum(
    "pooling",
    None,
    ["mean", "first"],
    "Give texts as vectors: the mean of their tokens', or the first; else what the head gives.",
)
flags.DEFINE_bool(
    "tokenizer_in_graph",
    False,
    "Take strings, not ids: of a classifier with WordPiece; needs TensorFlow Text's kernels.",
)


@group("Check")
def define_check_flags():
    flags.DEFINE_string(
        "check_text",
        None,
        "File of texts on which the file is compared with the model in float32, as the task's "
        "recipe reads or a .txt: equal labels, tags, answers or choices, the correlation of "
        "numbers, or the cosine of vectors; the --dev of the run of --model_dir if not given, and "
        "empty for none. The figures are in the log, in OUTPUT_DIR/model_card.md and in the "
        "file. Agreement below 98 %, or a mean cosine or a correlation below 0.99, is warned of: "
        "2 texts of 100 then get another answer than from the model that was evaluated.",
    )
    flags.DEFINE_string(
        "check_column", None, "Its column of texts; what the task's recipe expects if not given."
    )
    flags.DEFINE_string("check_pair_column", None, "Its column of second texts, for pairs.")
    flags.DEFINE_integer("check_count", 200, "The most of these texts to compare, drawn.", 1)
    flags.DEFINE_string(
        "golden",
        None,
        "File of texts, read as --check_text: OUTPUT_DIR/golden.json gets their ids, what LiteRT "
        "gives for them and the answer, for the tests of an app.",
    )


@group("Models that write")
def define_writing_flags():
    flags.DEFINE_integer("beams", 4, "Beams of a search; 1 for greedy search alone.", 1)
    flags.DEFINE_integer(
        "max_new_tokens", None, "Most tokens of a beam search, or translation; 64, or fewer.", 1
    )
    flags.DEFINE_string(
        "end_token", None, "Token that ends a text; what stands between documents if not given."
    )


@group("Metadata")
def define_metadata_flags():
    flags.DEFINE_string("name", "text model", "Name of the model.")
    flags.DEFINE_list("labels", None, "Names for the model's labels, in their order.")
    flags.DEFINE_string("model_version", None, "Version of the model.")
    flags.DEFINE_string("author", None, "Who made it.")
    flags.DEFINE_string("license", None, "Under which it is given.")
    flags.DEFINE_float(
        "score_threshold", None, "MediaPipe leaves out classes less probable than this.", 0, 1
    )


define_check_flags()
define_writing_flags()
define_metadata_flags()
flags.mark_flags_as_required(["model_dir", "output_dir"])


WROTE = "Wrote %s, %.2f MB."
# Flags that do not apply to models that generate text.
NOT_OF_WRITERS = ("labels", "fixed_only", "score_threshold", "tokenizer_in_graph")
NOT_OF_WRITERS += ("check_text", "golden")
NOT_OF_TRANSLATORS = ("max_length", "end_token")
# Flags that apply to models that generate text only.
OF_WRITERS = ("beams", "max_new_tokens", "end_token")


def check_flags():
    """Raise an InputError for conflicting flags."""
    if not all(length.strip().isdecimal() for length in FLAGS.fixed_lengths):
        raise InputError(
            f"--fixed_lengths={','.join(FLAGS.fixed_lengths)} must be whole numbers, such as "
            "32,64."
        )
    if FLAGS.fixed_only and not FLAGS.fixed_lengths:
        raise InputError("fixed_only=True leaves no signature; give `fixed_lengths`.")
    if FLAGS.calibration_text and FLAGS.quantization != "static_int8":
        raise InputError(
            "`calibration_text` is for quantization='static_int8', not "
            f"{FLAGS.quantization!r}; leave it out."
        )
    if FLAGS.golden and FLAGS.tokenizer_in_graph:
        raise InputError(
            "--golden writes ids, and a file of --tokenizer_in_graph takes none; leave one out."
        )


def main():

    calibration = calibration_texts() if FLAGS.calibration_text else None
    path = pathlib.Path(FLAGS.output_dir) / "model.tflite"
    check_writable(path)
    settings = checkpoints.read_task_settings(FLAGS.model_dir)
    tokenizer = text.load_tokenizer(FLAGS.model_dir)
    model = checkpoints.load_model(
        FLAGS.model_dir, None if FLAGS.pooling else checkpoints.read_head(FLAGS.model_dir)
    )
    if model.head in ("causal_lm", "sequence_to_sequence"):
        export_writer(model, path, tokenizer)
        return
    refuse(OF_WRITERS, model)
    golden = FLAGS.golden and read_as_the_task(
        FLAGS.golden, FLAGS.check_column, FLAGS.check_pair_column
    )
    differences = export.export_tflite(
        model,
        path,
        tokenizer,
        FLAGS.labels or checkpoints.read_labels(FLAGS.model_dir),
        FLAGS.quantization,
        FLAGS.max_length or settings.get("max_length", 128),
        FLAGS.name,
        settings,
        fixed_lengths=[int(length) for length in FLAGS.fixed_lengths],
        fixed_only=FLAGS.fixed_only,
        pooling=FLAGS.pooling,
        credits=export.Credits(FLAGS.model_version, FLAGS.author, FLAGS.license),
        score_threshold=FLAGS.score_threshold,
        tokenizer_in_graph=FLAGS.tokenizer_in_graph,
        calibration_text=calibration,
        check_inputs=check_inputs(),
    )
    logging.info(WROTE, path, path.stat().st_size / 1e6)
    write_text(path.with_name("model_card.md"), export.file_card(path, card_facts(), differences))
    if golden:
        export.write_golden(path.with_name("golden.json"), runtime.load_runner(path), golden)
        logging.info("Wrote %s.", path.with_name("golden.json"))


def card_facts():
    """Return {name: value} of the flags that describe the model, for its model card."""
    names = ("name", "model_dir", "quantization", "pooling", "model_version", "author", "license")
    return {name.replace("_", " "): FLAGS[name].value for name in names}


def read_as_the_task(path, *columns):
    """Return the `Inputs` of a file as the model of --model_dir reads them."""
    return common.read_inputs(path, None if FLAGS.pooling else FLAGS.model_dir, *columns)


def check_inputs():
    """Return the `Inputs` of --check_text or the run's dev set to check the file on, or None."""
    if FLAGS.check_text == "":
        return None
    if FLAGS.check_text:
        inputs = read_as_the_task(FLAGS.check_text, FLAGS.check_column, FLAGS.check_pair_column)
        return inputs.draw(FLAGS.check_count)
    flags_path = pathlib.Path(FLAGS.model_dir).parent / "flags.json"
    run = read_json(flags_path) if flags_path.is_file() else {}
    if not run.get("dev") or not pathlib.Path(run["dev"]).is_file():
        logging.info("No dev set of a run is there to compare the file on; give --check_text.")
        return None
    columns = run.get("prompt_column") or run.get("text_column"), run.get("pair_column")
    try:
        return read_as_the_task(run["dev"], *columns).draw(FLAGS.check_count)
    except InputError as e:
        logging.warning("The file is not compared with the model: %s", e)
        return None


def refuse(names, model):
    """Raise an InputError for a given flag that does not apply to the model."""
    for name in names:
        if FLAGS[name].present:
            raise InputError(f"`{name}` is not for a model with the head {model.head!r}.")


def export_writer(model, path, tokenizer):
    """Export a causal LM or a translator."""

    translates = model.head == "sequence_to_sequence"
    refuse(NOT_OF_WRITERS + (NOT_OF_TRANSLATORS if translates else ()), model)
    how = {
        "quantization": FLAGS.quantization,
        "name": FLAGS.name,
        "fixed_lengths": [int(length) for length in FLAGS.fixed_lengths] or None,
        "beams": FLAGS.beams,
        "max_new_tokens": FLAGS.max_new_tokens,
        "credits": export.Credits(FLAGS.model_version, FLAGS.author, FLAGS.license),
    }
    if model.head == "causal_lm":
        own = {"max_length": FLAGS.max_length, "end_token": FLAGS.end_token}
        export.export_generator(model, path, tokenizer, **how, **own)
    else:
        export.export_translator(model, path, tokenizer, **how)
    logging.info(WROTE, path, path.stat().st_size / 1e6)
    if translates:
        settings = runtime.read_files(path)[0]
        logging.info(
            "It reads sources of at most %d tokens, as --fixed_lengths has it, and writes at most "
            "%d, as --max_new_tokens has it.",
            settings["model_max_length"],
            settings["generation"]["max_new_tokens"],
        )


def calibration_texts():
    """Return a sample of --calibration_text, read as the task of --model_dir does."""
    columns = FLAGS.calibration_column, FLAGS.calibration_pair_column
    inputs = read_as_the_task(FLAGS.calibration_text, *columns)
    return inputs.draw(FLAGS.calibration_count).read_together()


if __name__ == "__main__":
    common.run(main, check=check_flags)
