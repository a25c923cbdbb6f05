"""Cost of large corpora: rates of one core, and hours and price of a terabyte of text.

    python -m benchmarks.large_corpora --input=imdb.tsv --tokenizer_dir=TOKENIZER

Prepares a corpus of --input, predicts the classes of its rows, and caches the logits of a teacher
for them, each by one thread and in shards as a pipeline does, with random weights of the sizes of
--sizes. Rates are per second of CPU time after models are loaded, which other work on the machine
hardly changes. The price of a core's hour is an assumption: --price.
"""

import pathlib
import tempfile
import time

from absl import flags

from recipes.shell import entry_point

FLAGS = flags.FLAGS
flags.DEFINE_string("input", None, "A .tsv of texts in the column sentence.")
flags.DEFINE_string("tokenizer_dir", None, "Folder of the tokenizer.")
flags.DEFINE_list("sizes", ["tinybert_4l_312", "bert_base"], "Sizes of models.")
flags.DEFINE_integer("rows", 300, "Texts that each model reads.", 1)
flags.DEFINE_integer("max_length", 128, "Longest text in tokens.", 3)
flags.DEFINE_float("price", 0.04, "Price of a core's hour.", 0)
flags.mark_flags_as_required(["input", "tokenizer_dir"])


class Clock:
    """Function of `tfnlp.utils.shard_work` that takes the CPU time of the work."""

    def __init__(self):
        self.seconds = 0

    def __call__(self, load, items):
        make = load()
        for item in items:
            start = time.process_time()
            make(item)
            self.seconds += time.process_time() - start
            yield item


def tell(name, text_bytes, tokens, seconds):
    """Print the rates of one core, and hours and price of 10^12 bytes."""
    hours = 1e12 / text_bytes * seconds / 3600
    print(
        f"{name}: {tokens / seconds:,.0f} tokens/s, {text_bytes / seconds / 1e6:.3f} MB/s; "
        f"1 TB: {hours:,.0f} core-hours, {hours * FLAGS.price:,.0f} at {FLAGS.price:g} each"
    )


def main():
    entry_point.load_tensorflow()
    import tensorflow as tf

    from tfnlp import text

    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    tokenizer = text.load_tokenizer(FLAGS.tokenizer_dir)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        prepare(folder, tokenizer)
        lines = pathlib.Path(FLAGS.input).read_text(encoding="utf-8").splitlines()
        (folder / "few.tsv").write_text("\n".join(lines[: FLAGS.rows + 1]), encoding="utf-8")
        for size in FLAGS.sizes:
            run_model(folder / size, size, folder / "few.tsv", tokenizer)


def prepare(folder, tokenizer):
    """Prepare the corpus, with duplicates and without."""
    from tfnlp.corpora import CorpusSettings, prepare_corpus

    for deduplicate in (False, True):
        clock, settings = Clock(), CorpusSettings(deduplicate=deduplicate)
        counts = prepare_corpus(
            [FLAGS.input], tokenizer, folder / str(deduplicate), settings, map_shards=clock
        )
        text_bytes = sum(shard["text_bytes"] for shard in counts["shards"])
        name = "prepare_corpus, deduplicate" if deduplicate else "prepare_corpus"
        tell(name, text_bytes, counts["counts"]["tokens"], clock.seconds)


def run_model(folder, size, source, tokenizer):
    """Predict the classes of a file's texts, and cache a teacher's logits for them."""
    import numpy as np

    from distill import reports
    from distill.learning.teacher_outputs import compute_teacher_outputs
    from tfnlp import checkpoints, configs, models, pipelines
    from tfnlp.text import LengthBatches, read_examples

    config = configs.config_by_name(None, size, vocabulary_size=tokenizer.vocabulary_size)
    model = models.build_model(config, "classifier", 2)
    settings = {"max_length": FLAGS.max_length}
    checkpoints.save_model(model, folder / "model", ["bad", "good"], tokenizer, settings)
    texts = read_examples(source, label_column=None).texts
    encodings = tokenizer.encode(texts, max_length=FLAGS.max_length)
    tokens = int(np.sum(encodings.lengths))
    # The bytes of what the model reads, since long texts are cut.
    text_bytes = source.stat().st_size * tokens / np.sum(tokenizer.encode(texts).lengths)
    task = pipelines.prediction_task("classifier", ["bad", "good"], settings)
    columns = pipelines.Columns(label="")
    predictor, clock = reports.Predictor(str(folder / "model"), task, columns), Clock()
    reports.predict_files(predictor, [source], folder / "said", 0.02, clock)
    tell(f"predict, {size}", text_bytes, tokens, clock.seconds)
    batches, clock = LengthBatches(encodings, 32), Clock()
    reads = [("logits", None)]
    compute_teacher_outputs(model, batches, reads, folder / "cache", clock)
    tell(f"teacher outputs, {size}", text_bytes, tokens, clock.seconds)


if __name__ == "__main__":
    entry_point.run(main)
