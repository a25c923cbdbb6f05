"""Fine-tunes the same checkpoint with tfnlp and with transformers, and compares dev scores.

    python -m benchmarks.finetune_parity --model_dir=MINILM --task=classifier \\
        --train=train.tsv --dev=dev.tsv --output_dir=runs/parity

Both get the same batches in the same order, the same schedule, AdamW and clipping. Each library
draws its own head weights and dropout masks. The score of a run is that of its best epoch. Each
run's scores are kept with the flags and data that affect them, so that the same command resumes
where it was stopped; a command with other settings needs another folder.
"""

import functools
import math
import pathlib
import sys

from absl import flags

from benchmarks.torch_inputs import torch_inputs
from recipes.flags import task_flags, training_flags
from recipes.shell import entry_point
from tfnlp.utils.files import file_hash, read_json, write_json

FLAGS = flags.FLAGS
flags.DEFINE_string("model_dir", None, "Hugging Face BERT folder to start from.")
flags.DEFINE_enum(
    "task",
    "classifier",
    ["classifier", "regression", "tagger", "answerer", "chooser"],
    "What to fine-tune for.",
)
flags.DEFINE_enum(
    "monitor", "accuracy", ["accuracy", "matthews", "macro_f1"], "A classifier's score."
)
flags.DEFINE_integer("seeds", 3, "Runs of each, with seeds 0, 1, ...", 1)
task_flags.define_classification_data_flags()
training_flags.define_training_flags(epochs=3, learning_rate=5e-5)
flags.mark_flag_as_required("model_dir")

CLASSES = {
    "classifier": "AutoModelForSequenceClassification",
    "regression": "AutoModelForSequenceClassification",
    "tagger": "AutoModelForTokenClassification",
    "answerer": "AutoModelForQuestionAnswering",
    "chooser": "AutoModelForMultipleChoice",
}


def main():
    entry_point.load_tensorflow()
    import numpy as np

    task, train, dev = read_task()
    runs = {"tfnlp": train_tfnlp, "transformers": train_transformers}
    runs = {name: functools.partial(run, task, train, dev) for name, run in runs.items()}
    means, errors = {}, {}
    for name, best in best_scores("parity.json", runs).items():
        means[name] = np.mean(best)
        errors[name] = np.std(best, ddof=1) / math.sqrt(len(best)) if len(best) > 1 else math.nan
        print(
            f"{name}: mean of {len(best)} best dev scores ({task.monitor}) {means[name]:.4f}, "
            f"standard error {errors[name]:.4f}"
        )
    difference = means["tfnlp"] - means["transformers"]
    error = math.hypot(*errors.values())
    print(f"difference {difference:+.4f}, standard error of it {error:.4f}")


def best_scores(file_name, runs):
    """Run all runs with all seeds, except those already in a file of --output_dir.

    Args:
        file_name: name of the file, which holds the settings and each run's scores by epoch.
        runs: {name: function without arguments that returns the scores by epoch}.

    Returns:
        {name: list of the best score for each seed}.

    Raises:
        InputError: if the file holds scores of other flags or other data.
    """
    path = pathlib.Path(FLAGS.output_dir) / file_name
    kept = {"settings": settings(), "scores": {}}
    if path.exists():
        kept = checked(path, read_json(path), kept["settings"])
    scores, best = kept["scores"], {name: [] for name in runs}
    for seed in range(FLAGS.seeds):
        FLAGS.seed = seed
        for name, run in runs.items():
            key = f"{name} seed {seed}"
            if key not in scores:
                scores[key] = run()
                write_json(path, kept)
            print(f"{key}: {' '.join(f'{s:.4f}' for s in scores[key])}", flush=True)
            best[name].append(max(scores[key]))
    return best


def settings():
    """Return all that affects a score, except the seed: the flags, and hashes of both files."""
    mine = {flag.name: flag.value for flag in FLAGS.get_flags_for_module(sys.modules[__name__])}
    found = training_flags.decisive_flags() | mine
    for name in ("train", "dev"):
        found[f"{name} (SHA-256)"] = file_hash(found[name])
    return {key: value for key, value in found.items() if key not in ("seed", "seeds")}


def checked(path, kept, expected):
    """Return a file's content if it has the expected settings.

    Raises:
        InputError: if the settings differ.
    """
    from tfnlp.utils.errors import InputError

    there = kept.get("settings", {})
    differing = sorted(k for k in there | expected if there.get(k) != expected.get(k))
    if differing:
        key = differing[0]
        raise InputError(
            f"{path} holds scores of other settings: there {key} is {there.get(key)!r}, here "
            f"{expected.get(key)!r}; give another output_dir."
        )
    return kept


def read_task():
    """Return the task and its training and dev examples."""
    from tfnlp import tasks
    from tfnlp.tasks.tagging import tag_names

    if FLAGS.task == "classifier":
        splits = task_flags.read_labelled()
        train, dev = splits["train"], splits["dev"]
        return tasks.Classification(train.label_names, FLAGS.monitor), train, dev
    read = {
        "regression": tasks.read_scored_pairs,
        "tagger": tasks.read_tagged,
        "answerer": tasks.read_questions,
        "chooser": tasks.read_choices,
    }[FLAGS.task]
    train, dev = read(FLAGS.train), read(FLAGS.dev)
    task = {
        "regression": tasks.Regression,
        "tagger": lambda: tasks.Tagging(tag_names(train)),
        "answerer": tasks.QuestionAnswering,
        "chooser": tasks.MultipleChoice,
    }[FLAGS.task]()
    return task, train, dev


def make_batches(task, train, dev, tokenizer=None):
    from tfnlp.text import load_tokenizer
    from tfnlp.training import encode_batches

    tokenizer = tokenizer or load_tokenizer(FLAGS.model_dir)
    sizes = (FLAGS.max_length, FLAGS.batch_size)
    batches = encode_batches(task, tokenizer, train, *sizes, shuffle=True, seed=FLAGS.seed)
    return tokenizer, batches, encode_batches(task, tokenizer, dev, *sizes)


def load_start(task):
    """Return the model of --model_dir with the task's head, and None for its own tokenizer."""
    from tfnlp.checkpoints import load_model

    return load_model(FLAGS.model_dir, task.kind.head, task.num_classes), None


def train_tfnlp(
    task, train, dev, name="tfnlp", regularizer=lambda model, task: None, start=load_start
):
    """Fine-tune with tfnlp; return the dev score after each epoch.

    Args:
        task: see `tfnlp.tasks`.
        train, dev: the task's examples.
        name: name of the run's folder, to which the seed is added.
        regularizer: a function of (model, task) that returns an additional loss, or None.
        start: a function of the task that returns the initial model and its tokenizer, or None for
            that of --model_dir.
    """
    import keras

    from tfnlp.training import FineTuner, RunFolder, fit
    from tfnlp.training.run.inference import predictor
    from tfnlp.training.step.optimizer import optimizer_of

    keras.backend.clear_session()
    keras.utils.set_random_seed(FLAGS.seed)
    model, tokenizer = start(task)
    _, batches, dev_batches = make_batches(task, train, dev, tokenizer)
    config = training_flags.training_config()
    trained = FineTuner(model, task, regularizer(model, task))
    trained.compile(optimizer_of(config, model, len(batches)), jit_compile=False)
    run = RunFolder(
        f"{FLAGS.output_dir}/{name}_seed{FLAGS.seed}", settings() | {"seed": FLAGS.seed}
    )

    predict = predictor(model, task.kind.reads)

    def evaluate():
        found = task.score(dev, dev_batches.encodings, predict(dev_batches))
        return {task.monitor: found[task.monitor]}

    fit(
        trained, batches, config, run, lambda folder: None, monitor=task.monitor, evaluate=evaluate
    )
    return [metrics[task.monitor] for metrics in run.metrics()]


def train_transformers(task, train, dev):
    """Fine-tune with transformers; return the dev score after each epoch."""
    import torch
    import transformers

    _, batches, dev_batches = make_batches(task, train, dev)
    config = training_flags.training_config()
    torch.manual_seed(FLAGS.seed)
    sizes = {"num_labels": task.num_classes} if task.num_classes else {}
    if FLAGS.task == "regression":
        sizes["problem_type"] = "regression"
    # A head with another number of classes is initialised anew, as in `load_model`.
    model = getattr(transformers, CLASSES[FLAGS.task]).from_pretrained(
        FLAGS.model_dir, ignore_mismatched_sizes=True, **sizes
    )
    plain = [p for n, p in model.named_parameters() if "bias" in n or "LayerNorm" in n]
    decayed = [p for n, p in model.named_parameters() if "bias" not in n and "LayerNorm" not in n]
    optimizer = torch.optim.AdamW(
        [
            {"params": decayed, "weight_decay": config.weight_decay},
            {"params": plain, "weight_decay": 0.0},
        ],
        lr=config.learning_rate,
        eps=1e-8,
    )
    total = config.epochs * len(batches)
    schedule = transformers.get_linear_schedule_with_warmup(
        optimizer, round(config.warmup_share * total), total
    )
    scores = []
    for epoch in range(config.epochs):
        model.train()
        for x, labels in batches.epoch(epoch):
            model(**torch_inputs(x), **torch_labels(labels)).loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), config.clip_norm)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
        model.eval()
        found = task.score(dev, dev_batches.encodings, torch_outputs(task, model, dev_batches))
        scores.append(found[task.monitor])
    return scores


def torch_labels(labels):
    """Convert a batch's labels to the keyword arguments of `transformers` models."""
    import torch

    labels = torch.tensor(labels)
    if FLAGS.task == "answerer":
        return {"start_positions": labels[:, 0].long(), "end_positions": labels[:, 1].long()}
    return {"labels": labels if FLAGS.task == "regression" else labels.long()}


def torch_outputs(task, model, batches):
    """Return the outputs of every encoding, in the form of `tfnlp.training.predict`."""
    import torch

    results = {key: [None] * len(batches.encodings) for key in task.kind.reads}
    tokens = FLAGS.task in ("tagger", "answerer")
    with torch.no_grad():
        for indices in batches.batch_indices():
            found = model(**torch_inputs(batches.batch(indices)[0]))
            for key in task.kind.reads:
                value = getattr(found, key).numpy()
                for row, i in enumerate(indices):
                    results[key][i] = value[row, : batches.lengths[i]] if tokens else value[row]
    return results


if __name__ == "__main__":
    entry_point.run(main)
