"""Fine-tunes the same checkpoint with tfnlp and with transformers, and compares dev accuracy.

    python -m benchmarks.finetune_parity --model_dir=MINILM --train=train.tsv --dev=dev.tsv \\
        --output_dir=runs/parity

Both get the same batches in the same order, the same schedule, AdamW and clipping; weights of
the head and dropout are each library's own. The score is that of the best epoch.
"""

import pathlib

from absl import flags

from benchmarks.torch_inputs import torch_inputs
from recipes import common

FLAGS = flags.FLAGS
flags.DEFINE_string("model_dir", None, "Hugging Face BERT folder to start from.")
flags.DEFINE_integer("seeds", 3, "Runs of each, with seeds 0, 1, ...", 1)
common.define_data_flags()
common.define_training_flags(epochs=3, learning_rate=5e-5)
flags.mark_flag_as_required("model_dir")


def main():
    import numpy as np

    from tfnlp.files import read_json, write_json

    path = pathlib.Path(FLAGS.output_dir) / "parity.json"
    scores = read_json(path) if path.exists() else {}
    for seed in range(FLAGS.seeds):
        FLAGS.seed = seed
        for name, train in (("tfnlp", train_tfnlp), ("transformers", train_transformers)):
            key = f"{name} seed {seed}"
            if key not in scores:
                scores[key] = train()
                write_json(path, scores)
            print(f"{key}: {' '.join(f'{s:.4f}' for s in scores[key])}", flush=True)
    for name in ("tfnlp", "transformers"):
        best = [max(s) for key, s in scores.items() if key.startswith(name)]
        print(f"{name}: mean of {len(best)} best dev accuracies {np.mean(best):.4f}")


def _data():
    from tfnlp.text import WordPieceTokenizer

    train, dev, _ = common.read_splits()
    tokenizer = WordPieceTokenizer.from_folder(FLAGS.model_dir)
    classes = len(train.label_names)
    batches = common.batches_of(tokenizer, train, shuffle=True)
    return batches, common.batches_of(tokenizer, dev), classes


def train_tfnlp():
    """The dev accuracy after each epoch."""
    import keras

    from tfnlp.checkpoints import load_model
    from tfnlp.training import RunFolder, compile_classifier, fit

    keras.backend.clear_session()
    keras.utils.set_random_seed(FLAGS.seed)
    batches, dev, classes = _data()
    model = load_model(FLAGS.model_dir, "classifier", classes)
    config = common.training_config()
    trained = compile_classifier(model, config.optimizer(model, len(batches)))
    run = RunFolder(f"{FLAGS.output_dir}/seed{FLAGS.seed}", common.decisive_flags())
    fit(trained, batches, config, run, lambda: None, dev)
    return [metrics["val_accuracy"] for metrics in run.metrics()]


def train_transformers():
    """The dev accuracy after each epoch."""
    import torch
    import transformers

    batches, dev, classes = _data()
    config = common.training_config()
    torch.manual_seed(FLAGS.seed)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(
        FLAGS.model_dir, num_labels=classes
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
            loss = model(**torch_inputs(x), labels=torch.tensor(labels).long()).loss
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), config.clip_norm)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
        model.eval()
        right = 0
        with torch.no_grad():
            for x, labels in dev.epoch():
                predicted = model(**torch_inputs(x)).logits.argmax(-1).numpy()
                right += int((predicted == labels).sum())
        scores.append(right / len(dev.encodings))
    return scores


if __name__ == "__main__":
    common.run(main)
