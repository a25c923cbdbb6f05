"""Fine-tuning speed of tfnlp, transformers and keras-hub, side by side in one process.

    python -m benchmarks.finetune_throughput --model_dir=MINILM --train=train.tsv \\
        --output_dir=runs/throughput

All three train BERTs of the same size with AdamW, warm-up, clipping and batches of 32 on the
same sentences: tfnlp as its recipe does, transformers with each batch padded to its longest,
keras-hub with every batch padded to --hub_length. Rounds alternate; the figures are medians.
"""

import time

from absl import flags

from benchmarks.torch_inputs import torch_inputs
from recipes import common

FLAGS = flags.FLAGS
flags.DEFINE_string("model_dir", None, "Hugging Face BERT folder.")
flags.DEFINE_string("train", None, "Training file.")
flags.DEFINE_string("output_dir", None, "Folder to write throughput.json into.")
flags.DEFINE_integer("steps", 20, "Timed steps of each in a round.", 1)
flags.DEFINE_integer("rounds", 3, "Rounds.", 1)
flags.DEFINE_integer("batch_size", 32, "Sentences in a batch.", 1)
flags.DEFINE_integer("hub_length", 64, "Length that keras-hub's batches are padded to.", 3)
flags.mark_flags_as_required(["model_dir", "train", "output_dir"])


def main():
    import numpy as np

    from tfnlp.files import write_json
    from tfnlp.text import LengthBatches, WordPieceTokenizer, read_examples

    examples = read_examples(FLAGS.train)
    tokenizer = WordPieceTokenizer.from_folder(FLAGS.model_dir)
    encodings = tokenizer.encode(examples.texts, max_length=128)
    data = LengthBatches(encodings, FLAGS.batch_size, examples.labels, shuffle=True)
    random_batches = np.random.default_rng(0).permutation(len(encodings))
    random_batches = random_batches[: FLAGS.steps * FLAGS.batch_size].reshape(FLAGS.steps, -1)
    short = tokenizer.encode(examples.texts, max_length=FLAGS.hub_length)
    trainers = {
        "tfnlp": tfnlp_trainer(data),
        "transformers": transformers_trainer(data, random_batches),
        "keras-hub": keras_hub_trainer(LengthBatches(short, 32, examples.labels), random_batches),
    }
    rates = {name: [] for name in trainers}
    for step in range(FLAGS.rounds + 1):
        for name, trainer in trainers.items():
            start = time.perf_counter()
            trainer()
            if step:  # the first round warms up
                seconds = time.perf_counter() - start
                rates[name].append(FLAGS.steps * FLAGS.batch_size / seconds)
    medians = {name: float(np.median(r)) for name, r in rates.items()}
    for name, median in medians.items():
        ratio = medians["tfnlp"] / median
        rounds = " ".join(f"{r:.1f}" for r in rates[name])
        print(f"{name:13} {median:6.1f} sentences/s  tfnlp is {ratio:.2f} times it  ({rounds})")
    write_json(f"{FLAGS.output_dir}/throughput.json", rates)


def tfnlp_trainer(data):
    """A function that trains for the steps of a round."""
    from tfnlp.checkpoints import load_model
    from tfnlp.training import TrainingConfig, compile_classifier

    model = load_model(FLAGS.model_dir, "classifier", 2)
    config = TrainingConfig(batch_size=FLAGS.batch_size)
    trained = compile_classifier(model, config.optimizer(model, len(data)))
    dataset = data.dataset().take(FLAGS.steps)
    return lambda: trained.fit(dataset, verbose=0, shuffle=False)


def transformers_trainer(data, batches):
    """Likewise, with batches of random sentences padded to their longest."""
    import torch
    import transformers

    model = transformers.AutoModelForSequenceClassification.from_pretrained(FLAGS.model_dir)
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-5, weight_decay=0.01)

    def train():
        for indices in batches:
            x, labels = data.batch(indices)
            model(**torch_inputs(x), labels=torch.tensor(labels).long()).loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()

    return train


def keras_hub_trainer(data, batches):
    """Likewise, with every batch padded to --hub_length."""
    import keras
    import keras_hub
    import numpy as np
    import tensorflow as tf

    from tfnlp.checkpoints import read_config

    config = read_config(FLAGS.model_dir)
    backbone = keras_hub.models.BertBackbone(
        vocabulary_size=config.vocabulary_size,
        num_layers=config.num_layers,
        num_heads=config.num_heads,
        hidden_dim=config.hidden_dim,
        intermediate_dim=config.intermediate_dim,
        max_sequence_length=config.max_length,
    )
    model = keras_hub.models.BertTextClassifier(backbone, num_classes=2, preprocessor=None)
    model.compile(
        optimizer=keras.optimizers.AdamW(5e-5, weight_decay=0.01, global_clipnorm=1.0),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    inputs, labels = [], []
    for indices in batches:
        x, y = data.batch(indices)
        inputs.append(
            {k: np.pad(v, [(0, 0), (0, FLAGS.hub_length - v.shape[1])]) for k, v in x.items()}
        )
        labels.append(y)
    joined = {key: np.concatenate([x[key] for x in inputs]) for key in inputs[0]}
    dataset = tf.data.Dataset.from_tensor_slices((joined, np.concatenate(labels)))
    dataset = dataset.batch(FLAGS.batch_size).prefetch(4)
    return lambda: model.fit(dataset, verbose=0, shuffle=False)


if __name__ == "__main__":
    common.run(main)
