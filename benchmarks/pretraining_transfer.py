"""Gain of parts of pretrained models: fine-tunings from a folder's weights, or some of them.

    python -m benchmarks.pretraining_transfer --model_dirs=runs/electra/best,runs/bert/best \\
        --train=2000.tsv --dev=NSMC/dev.tsv --test=NSMC/test.tsv

Each classifier starts from random weights and takes over those of the parts: all, the embeddings
(tables), everything else (blocks) or nothing (none). Prints the accuracy of the last epoch, and
before it the effective rank of what the model makes of dev's tokens: the exponential of the
entropy of the shares of variance along the principal axes, 1 where all states lie on a line.
"""

from absl import flags

from recipes.shell import entry_point

FLAGS = flags.FLAGS
flags.DEFINE_list("model_dirs", None, "Folders of pretrained models.")
flags.DEFINE_list("parts", ["none", "all"], "Weights to take over: none, all, tables or blocks.")
flags.DEFINE_string("train", None, "Labelled texts to train on.")
flags.DEFINE_string("dev", None, "Labelled texts to score.")
flags.DEFINE_string("test", None, "Labelled texts to score too.")
flags.DEFINE_integer("seeds", 3, "Fine-tunings of each kind; 0: ranks alone.", 0)
flags.DEFINE_integer("max_length", 24, "Tokens of a text.", 3)
flags.DEFINE_integer("epochs", 6, "Epochs of a fine-tuning.", 1)
flags.DEFINE_integer("batch_size", 32, "Texts of a batch.", 1)
flags.DEFINE_float("learning_rate", 5e-4, "Peak rate.", 0)
flags.mark_flags_as_required(["model_dirs", "train", "dev", "test"])


def start(folder, part, num_classes):
    """Return a classifier that has the weights of a part of a folder's model."""
    from tfnlp.checkpoints import load_model, read_config
    from tfnlp.models import build_model

    model = build_model(read_config(folder), "classifier", num_classes)
    if part != "none":
        pretrained = {w.path: w for w in load_model(folder).weights}
        for weight in model.weights:
            is_table = weight.path.startswith("embeddings/")
            if weight.path in pretrained and part in ("all", "tables" if is_table else "blocks"):
                weight.assign(pretrained[weight.path])
    return model


def effective_rank(model, batches):
    """Return that of the last states of all tokens but the first and last of each text."""
    import numpy as np

    from tfnlp.training.run.inference import predict_batches

    states = predict_batches(model, batches, ("sequence_output",))["sequence_output"]
    covariance = np.cov(np.concatenate([rows[1:-1] for rows in states]), rowvar=False)
    variances = np.clip(np.linalg.eigvalsh(covariance), 1e-12, None)
    shares = variances / variances.sum()
    return np.exp(-np.sum(shares * np.log(shares)))


def accuracies(model, task, batches, examples):
    """Train a classifier; return its accuracy on each of the labelled sets but the first."""
    from tfnlp.training import FineTuner, TrainingConfig, compile_model
    from tfnlp.training.run.inference import evaluator

    names = "epochs", "batch_size", "learning_rate"
    trainer = FineTuner(model, task)
    compile_model(
        TrainingConfig(**{name: FLAGS[name].value for name in names}),
        trainer,
        len(batches["train"]),
    )
    epochs = iter(range(FLAGS.epochs))
    data = batches["train"].dataset(lambda: next(epochs))
    trainer.fit(data, epochs=FLAGS.epochs, verbose=0)
    for name in ("dev", "test"):
        outputs, _ = evaluator(model, task, batches[name].signature())(batches[name])
        yield 100 * task.score(examples[name], batches[name].encodings, outputs)["accuracy"]


def main():
    entry_point.load_tensorflow()
    import keras

    from tfnlp.tasks import Classification
    from tfnlp.text import LengthBatches, load_tokenizer, read_examples
    from tfnlp.utils.seed_statistics import Estimate

    examples = {name: read_examples(FLAGS[name].value) for name in ("train", "dev", "test")}
    task = Classification(examples["train"].label_names)
    for folder in FLAGS.model_dirs:
        tokenizer = load_tokenizer(folder)
        encoded = {k: task.encode(tokenizer, x, FLAGS.max_length) for k, x in examples.items()}
        for part in FLAGS.parts:
            scores = []
            for seed in range(max(FLAGS.seeds, 1)):
                keras.utils.set_random_seed(seed)
                batches = {
                    name: LengthBatches(rows, FLAGS.batch_size, labels, seed=seed, shuffle=True)
                    for name, (rows, labels) in encoded.items()
                }
                model = start(folder, part, task.num_classes)
                if not seed:
                    print(folder, part, f"rank {effective_rank(model, batches['dev']):.1f}")
                if FLAGS.seeds:
                    scores.append([*accuracies(model, task, batches, examples)])
            for name, column in zip(("dev", "test"), zip(*scores, strict=True), strict=False):
                figure = Estimate.of(column)
                print(folder, part, f"{name} {figure.mean:.2f} ± {figure.error or 0:.2f}")


if __name__ == "__main__":
    entry_point.run(main)
