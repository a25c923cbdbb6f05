"""Fine-tuning speed of tfnlp, transformers and keras-hub in one process.

    python -m benchmarks.finetune_throughput --model_dir=MINILM --train=train.tsv \\
        --output_dir=runs/throughput

All train BERTs of the same size with AdamW, warm-up, linear decay, clipping and batches of
--batch_size on the same sentences. tfnlp trains as its recipe does, on batches by length; the
others as their users do, transformers on random batches each padded to its longest, keras-hub on
random batches padded to --hub_length, and both once more on the very batches of tfnlp. Rounds
alternate; the figures are medians. Beside them stand sentences by second of all cores' time, which
other work on the machine changes less, above all with one thread (OMP_NUM_THREADS=1
TF_NUM_INTRAOP_THREADS=1).
"""

import time

from absl import flags

from benchmarks.torch_inputs import torch_inputs
from recipes.shell import entry_point

FLAGS = flags.FLAGS
flags.DEFINE_string("model_dir", None, "Hugging Face BERT folder.")
flags.DEFINE_string("train", None, "Training file.")
flags.DEFINE_string("output_dir", None, "Folder to write throughput.json into.")
flags.DEFINE_integer("steps", 20, "Timed steps of each in a round.", 1)
flags.DEFINE_integer("rounds", 3, "Rounds.", 1)
flags.DEFINE_integer("batch_size", 32, "Sentences in a batch.", 1)
flags.DEFINE_integer("hub_length", 64, "Length that keras-hub's random batches are padded to.", 3)
flags.mark_flags_as_required(["model_dir", "train", "output_dir"])


def main():
    entry_point.load_tensorflow()
    import numpy as np

    from tfnlp.text import LengthBatches, WordPieceTokenizer, read_examples
    from tfnlp.utils.files import write_json

    examples = read_examples(FLAGS.train)
    tokenizer = WordPieceTokenizer.from_folder(FLAGS.model_dir)
    by_length, padded = (
        LengthBatches(
            tokenizer.encode(examples.texts, max_length=length),
            FLAGS.batch_size,
            examples.labels,
            shuffle=True,
        )
        for length in (128, FLAGS.hub_length)
    )
    order = by_length.batch_indices()[: FLAGS.steps]
    # Random batches with the sizes of tfnlp's.
    picks = np.random.default_rng(0).permutation(len(examples))
    random = np.split(picks, np.cumsum([len(batch) for batch in order]))[: len(order)]
    trainers = {
        "tfnlp, by length": tfnlp_trainer(by_length),
        "transformers, padded to the longest": transformers_trainer(by_length, random),
        "transformers, by length": transformers_trainer(by_length, order),
        "keras-hub, padded": keras_hub_trainer(padded, random, FLAGS.hub_length),
        "keras-hub, by length": keras_hub_trainer(by_length, order),
    }
    sentences = sum(map(len, order))
    rates, core_rates = ({name: [] for name in trainers} for _ in range(2))
    for step in range(FLAGS.rounds + 1):
        for name, trainer in trainers.items():
            start, core_start = time.perf_counter(), time.process_time()
            trainer()
            if step:  # the first round warms up
                rates[name].append(sentences / (time.perf_counter() - start))
                core_rates[name].append(sentences / (time.process_time() - core_start))
    medians, core_medians = (
        {name: float(np.median(r)) for name, r in x.items()} for x in (rates, core_rates)
    )
    for name, median in medians.items():
        ratio, core_ratio = (x["tfnlp, by length"] / x[name] for x in (medians, core_medians))
        rounds = " ".join(f"{r:.1f}" for r in rates[name])
        print(
            f"{name:36} {median:6.1f} sentences/s  tfnlp is {ratio:.2f} times it  ({rounds});  "
            f"{core_medians[name]:6.1f} per core second, {core_ratio:.2f} times"
        )
    write_json(f"{FLAGS.output_dir}/throughput.json", {"wall": rates, "core_seconds": core_rates})


def training_config():
    from tfnlp.training import TrainingConfig

    return TrainingConfig(batch_size=FLAGS.batch_size)


def tfnlp_trainer(data):
    """Return a function that trains tfnlp's model for the steps of a round."""
    from tfnlp.checkpoints import load_model
    from tfnlp.tasks import Classification
    from tfnlp.training import FineTuner, compile_model

    model = load_model(FLAGS.model_dir, "classifier", 2)
    trained = FineTuner(model, Classification(["negative", "positive"]))
    compile_model(training_config(), trained, len(data))
    dataset = data.dataset().take(FLAGS.steps)
    return lambda: trained.fit(dataset, verbose=0, shuffle=False)


def transformers_trainer(data, batches):
    """Return a function that trains transformers' model on batches, each padded to its longest."""
    import torch
    import transformers

    config = training_config()
    model = transformers.AutoModelForSequenceClassification.from_pretrained(FLAGS.model_dir)
    model.train()
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=config.learning_rate, weight_decay=config.weight_decay
    )
    total = config.epochs * len(data)
    schedule = transformers.get_linear_schedule_with_warmup(
        optimizer, round(config.warmup_share * total), total
    )

    def train():
        for indices in batches:
            x, labels = data.batch(indices)
            model(**torch_inputs(x), labels=torch.tensor(labels).long()).loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), config.clip_norm)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()

    return train


def keras_hub_trainer(data, batches, length=None):
    """Return a function that trains keras-hub's model on batches, padded to `length` if given."""
    import keras
    import keras_hub
    import numpy as np
    import tensorflow as tf

    from tfnlp.checkpoints import read_config
    from tfnlp.training import WarmupLinearDecay

    sizes, config = read_config(FLAGS.model_dir), training_config()
    backbone = keras_hub.models.BertBackbone(
        vocabulary_size=sizes.vocabulary_size,
        num_layers=sizes.num_layers,
        num_heads=sizes.num_heads,
        hidden_dim=sizes.hidden_dim,
        intermediate_dim=sizes.intermediate_dim,
        max_sequence_length=sizes.max_length,
    )
    model = keras_hub.models.BertTextClassifier(backbone, num_classes=2, preprocessor=None)
    total = config.epochs * len(data)
    schedule = WarmupLinearDecay(
        config.learning_rate, total, warmup_steps=round(config.warmup_share * total)
    )
    model.compile(
        optimizer=keras.optimizers.AdamW(
            schedule, weight_decay=config.weight_decay, global_clipnorm=config.clip_norm
        ),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
        # Keras' default with a fixed length; else XLA would compile each length anew.
        jit_compile="auto" if length else False,
    )

    def arrays():
        for indices in batches:
            x, labels = data.batch(indices)
            more = length - x["token_ids"].shape[1] if length else 0
            yield {key: np.pad(value, [(0, 0), (0, more)]) for key, value in x.items()}, labels

    ids = tf.TensorSpec((None, length), "int32")
    signature = (
        {key: ids for key in ("token_ids", "segment_ids", "padding_mask")},
        tf.TensorSpec((None,), "int32"),
    )
    dataset = tf.data.Dataset.from_generator(arrays, output_signature=signature)
    dataset = dataset.apply(tf.data.experimental.assert_cardinality(len(batches))).prefetch(4)
    return lambda: model.fit(dataset, verbose=0, shuffle=False)


if __name__ == "__main__":
    entry_point.run(main)
