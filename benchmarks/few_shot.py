"""Accuracy from some texts of each label: finetune_few_shot beside setfit and others.

    python -m benchmarks.few_shot --model_dir=all-MiniLM-L6-v2 --train=sst2/train.tsv \\
        --dev=sst2/dev.tsv --shots=8,64 --output_dir=runs/few_shot

Each seed draws its own texts of each label, which all methods get: setfit with its defaults,
finetune_few_shot with the same, the same encoder fine-tuned as a classifier (20 epochs), and
logistic regression of TF-IDF. --dev is looked at once, by the finished model. The last columns are
the shares of its texts that an exported file gives the label of the Keras model. Numbers are means
over the seeds (standard deviations). Scores are kept in --output_dir, so that the same command
resumes. Needs `.[parity]`.
"""

import dataclasses
import functools
import pathlib
import tempfile

import numpy as np
from absl import app, flags

from distill import export, runtime
from recipes.flags import task_flags
from recipes.shell.command_line import read_numbers
from tfnlp import baselines, checkpoints, pipelines, tasks, text, training
from tfnlp.training.run.inference import predictor
from tfnlp.utils.files import read_json, write_json

FLAGS = flags.FLAGS
task_flags.define_classification_data_flags()
flags.DEFINE_string("model_dir", None, "Folder of sentence-transformers.", required=True)
flags.DEFINE_string("output_dir", None, "Folder that keeps the scores.", required=True)
flags.DEFINE_list("shots", ["8"], "Texts of each label.")
flags.DEFINE_integer("seeds", 5, "Draws of the texts.", 1)
flags.DEFINE_integer("dev_texts", 1000, "Texts of --dev to score, the first; all if fewer.", 1)
flags.DEFINE_integer("max_length", 64, "Tokens of a text; the rest is cut.", 3)
BATCH_SIZE = 16
EPOCHS = 20  # of plain fine-tuning
FILES = ("float32", "int8")


def main(_):
    splits = task_flags.read_labelled()
    dev, most = splits["dev"], FLAGS.dev_texts
    dev = dataclasses.replace(dev, texts=dev.texts[:most], labels=dev.labels[:most])
    path = pathlib.Path(FLAGS.output_dir, "few_shot.json")
    kept = read_json(path) if path.exists() else {}
    columns = ["shots", *METHODS, *[f"{name} file" for name in FILES]]
    print("| " + " | ".join(columns) + " |\n" + "| --- " * len(columns) + "|")
    for shots in read_numbers("shots"):
        rows = []
        for seed in range(FLAGS.seeds):
            key = f"{shots} shots, seed {seed}"
            if key not in kept:
                train = text.draw_shots(splits["train"], shots, seed)
                scores = [method(train, dev, seed) for method in METHODS.values()]
                kept[key] = [*np.hstack(scores)]
                write_json(path, kept)
            rows.append(kept[key])
        columns = [*zip(*rows, strict=True)]
        cells = [f"{np.mean(x):.3f} ({np.std(x):.3f})" for x in columns[: len(METHODS)]]
        cells += [f"{np.mean(x):.2%}" for x in columns[len(METHODS) :]]
        print(f"| {shots} | " + " | ".join(cells) + " |", flush=True)


def train_setfit(train, dev, seed):
    """Return the accuracy of setfit's trainer with its defaults."""
    import datasets
    import setfit
    import torch

    torch.set_num_threads(1)
    model = setfit.SetFitModel.from_pretrained(FLAGS.model_dir, device="cpu")
    model.model_body.max_seq_length = FLAGS.max_length
    model.model_body.float()
    with tempfile.TemporaryDirectory() as folder:
        arguments = setfit.TrainingArguments(
            output_dir=folder, report_to="none", save_strategy="no", seed=seed
        )
        columns = {"text": train.texts, "label": train.labels}
        setfit.Trainer(
            model=model, args=arguments, train_dataset=datasets.Dataset.from_dict(columns)
        ).train()
    return accuracy(model.predict(dev.texts), dev)


def train_few_shot(train, dev, seed):
    """Return the accuracy of `FewShotTuning`, and the share of equal labels of each file."""
    vectors = checkpoints.read_vector_head(FLAGS.model_dir)
    model, tokenizer, task = start(train, seed, vectors=vectors)
    data = training.Splits(train, dev=train, max_length=FLAGS.max_length, test=dev)
    config = training.TrainingConfig(
        epochs=1, learning_rate=2e-5, batch_size=BATCH_SIZE, seed=seed, log_to=()
    )
    with tempfile.TemporaryDirectory() as folder:
        run = training.RunFolder(folder, {})
        tuning = training.FewShotTuning(task, model, tokenizer, data=data, config=config, run=run)
        figures = tuning.run_all()
        best, labels = checkpoints.load_model(run.best, "classifier"), train.label_names
        runners = [pipelines.load_runner(run.best)]
        for name in FILES:
            path = pathlib.Path(folder, name)
            options = export.Export(quantization=name, max_length=FLAGS.max_length)
            export.export_tflite(best, path, tokenizer, labels, options)
            runners.append(runtime.TextClassifier(path))
        answers = [[x.label for x in runner.classify(dev.texts)] for runner in runners]
    expected, *of_files = np.array(answers)
    return figures["test_accuracy"], *[np.mean(x == expected) for x in of_files]


def train_plain(train, dev, seed):
    """Return the accuracy of the encoder fine-tuned as a classifier."""
    model, tokenizer, task = start(train, seed)
    config = training.TrainingConfig(epochs=EPOCHS, batch_size=BATCH_SIZE, seed=seed)
    sizes = FLAGS.max_length, BATCH_SIZE
    batches = training.encode_batches(
        task, tokenizer, train, *sizes, shuffle=True, seed=seed, fixed_length=FLAGS.max_length
    )
    trainer = training.FineTuner(model, task)
    training.compile_model(config, trainer, len(batches))
    for epoch in range(EPOCHS):
        for x, y in batches.epoch(epoch):
            trainer.train_on_batch(x, y)
    outputs = predictor(model)(training.encode_batches(task, tokenizer, dev, *sizes))
    return accuracy(np.argmax(outputs["logits"], 1), dev)


def start(train, seed, **options):
    """Return the classifier to train, its tokenizer and its task."""
    import keras

    keras.backend.clear_session()
    keras.utils.set_random_seed(seed)
    task = tasks.Classification(train.label_names)
    model = checkpoints.load_model(FLAGS.model_dir, "classifier", task.num_classes, **options)
    return model, text.load_tokenizer(FLAGS.model_dir), task


def tf_idf(unit, train, dev, seed):
    """Return the accuracy of TF-IDF of words, or of up to 5 characters."""
    bag = baselines.BagOfWords(unit=unit, max_ngram=5 if unit == "characters" else 2)
    model = baselines.LinearClassifier(bag=bag).fit(train.texts, train.labels)
    return accuracy(model.predict(dev.texts), dev)


def accuracy(predictions, examples):
    return float(np.mean(np.asarray(predictions) == np.asarray(examples.labels)))


# The last gives the shares of its files too.
METHODS = {
    "setfit": train_setfit,
    "plain fine-tuning": train_plain,
    "TF-IDF, words": functools.partial(tf_idf, "words"),
    "TF-IDF, characters": functools.partial(tf_idf, "characters"),
    "finetune_few_shot": train_few_shot,
}

if __name__ == "__main__":
    app.run(main)
