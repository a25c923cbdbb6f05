"""Trains small models on one device and mirrored on two; writes how far apart they end.

    python tests/training/strategy_runs.py differences.json

A program of its own for `test_strategy.py`, as a process has logical devices only if it asks
for them before TensorFlow starts; all cases are in one, which starts TensorFlow once.
"""

import contextlib
import functools
import json
import sys
import tempfile

import keras
import numpy as np
import tensorflow as tf
from keras import ops

if __name__ == "__main__":
    CPU = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(CPU, [tf.config.LogicalDeviceConfiguration()] * 2)

from distill.learning.distiller import Distiller
from distill.learning.methods import logits
from tests.kills import largest_difference, metrics_of
from tests.training.pretrain_runs import OBJECTIVES, make_pretraining
from tfnlp import models, tasks
from tfnlp.functional.recompute import recompute_blocks
from tfnlp.layers import fake_quantize, get_ranges
from tfnlp.layers.core.dense import Dense
from tfnlp.text import LengthBatches
from tfnlp.text.tokenizers.tokenizer import Encoding
from tfnlp.training import (
    FineTuner,
    RunFolder,
    TrainingConfig,
    add_lora,
    compile_model,
    fit,
    make_optimizer,
    make_strategy,
)
from tfnlp.training.run.step_log import SPEED
from tfnlp.training.step.adversarial import AdversarialRegularizer

V, L = 20, 7
OF_A_RUN = ("time", *SPEED)
KEYS = ("token_ids", "segment_ids", "padding_mask")
# Two replicas share them as 2 + 2, 2 + 1, 1 + 0 and 1 + 1.
SIZES = [4, 3, 1, 2] * 15
NAMES = ["O", "B-a", "I-a"]
# Of the losses of a text, of tokens, and of two outputs; a number and a choice are as the first.
COMPARED = ("classification", "tagging", "answering")
# {objective: parts that the two devices read a batch in}. Masked tokens and next sentences are
# trained as the order of sentences is, and causal LMs with a memory as permutation LMs.
PRETRAININGS = {"sentence_order": 2, "replaced_tokens": 1, "permutation_lm": 1}
TASKS = {
    "classification": tasks.Classification(["a", "b"]),
    "regression": tasks.Regression(),
    "tagging": tasks.Tagging(NAMES),
    "answering": tasks.QuestionAnswering(),
}


def text_model(task, dropout=0.0):
    """A model with a task's outputs, without blocks: the encoder is no matter here."""
    inputs = {key: keras.Input((None,), dtype="int32", name=key) for key in KEYS}
    x = keras.layers.Embedding(V, 8, name="embeddings")(inputs["token_ids"])
    x = keras.layers.Dense(8, activation="tanh")(x)
    x = keras.layers.Dropout(dropout)(x)
    mask = ops.cast(inputs["padding_mask"], "float32")[..., None]
    if task.kind.head not in ("tagger", "answerer"):
        x = ops.sum(x * mask, -2) / ops.sum(mask, -2)
    logits = keras.layers.Dense(task.num_classes or 2, dtype="float32")(x)
    if task.kind.head == "answerer":
        return keras.Model(inputs, {"start_logits": logits[..., 0], "end_logits": logits[..., 1]})
    return keras.Model(inputs, {"logits": logits})


def batches(name, sizes):
    """Batches of texts of 1 to L tokens, with labels that can be learned, and sample weights."""
    rng = np.random.default_rng(0)
    for count in sizes:
        ids = rng.integers(1, V, (count, L)).astype("int32")
        mask = (np.arange(L) < rng.integers(1, L + 1, (count, 1))).astype("int32")
        first = ids[..., 0]
        if name == "regression":
            labels = first / V
        elif name == "tagging":
            labels = np.where(mask * (ids % 5), ids % 3, -100)
        elif name == "answering":
            labels = np.stack([first % L, first % L], 1)
        else:
            labels = first % 2
        inputs = {"token_ids": ids * mask, "segment_ids": 0 * ids, "padding_mask": mask}
        labels = labels.astype("float32" if name == "regression" else "int32")
        yield inputs, labels, rng.choice([0.5, 1, 3], count).astype("float32")


def dataset(name, sizes):
    whole = next(batches(name, [4]))
    signature = tf.nest.map_structure(
        lambda v: tf.TensorSpec((None, *v.shape[1:]), v.dtype.name), whole
    )
    data = tf.data.Dataset.from_generator(lambda: batches(name, sizes), output_signature=signature)
    return data.apply(tf.data.experimental.assert_cardinality(len(sizes)))


def finetuner(name, adversarial=False):
    task = TASKS[name]
    model = text_model(task)
    regularizer = AdversarialRegularizer(model, task.kind, 1.0, step_size=0.5, start=0.1)
    return FineTuner(model, task, regularizer if adversarial else None)


def states_model(task, width, num_heads):
    """A tagger that gives states, and scores as of an attention."""
    inputs = {key: keras.Input((None,), dtype="int32", name=key) for key in KEYS}
    table = keras.layers.Embedding(V, width, keras.initializers.RandomNormal(0, 1))
    x = table(inputs["token_ids"])
    scores = ops.moveaxis(ops.tanh(x)[:, :, None, :num_heads] * x[:, None, :, :num_heads], -1, 1)
    real = ops.cast(inputs["padding_mask"], "float32")[:, None, None, :]
    seen = ops.mean(ops.tanh(scores) * real, 1)  # (B, L, L)
    y = keras.layers.Dense(width, activation="tanh")(ops.matmul(seen, x) + x)
    logits = keras.layers.Dense(task.num_classes)(y)
    outputs = {"logits": logits, "hidden_states": [x, y], "attention_scores": [scores]}
    return keras.Model(inputs, outputs)


def distiller():
    task = TASKS["tagging"]
    weights = {"hidden_state_weight": 0.3, "attention_weight": 0.1}
    student, teacher = states_model(task, 8, 1), states_model(task, 12, 2)
    terms = logits(teacher, student, task, [0], **weights)
    return Distiller(student, task, terms, teacher)


def tagger(prepare):
    """A fine-tuner of a model with blocks, which `prepare` changes."""
    fields = {"num_layers": 2, "num_heads": 2, "hidden_dim": 8, "intermediate_dim": 16}
    rates = {"dropout": 0.0, "attention_dropout": 0.0}
    config = models.BertConfig(vocabulary_size=V, max_length=L, **fields, **rates)
    model = models.build_model(config, "tagger", len(NAMES))
    prepare(model)
    return FineTuner(model, TASKS["tagging"])


def train(strategy, data, make, parts=1):
    """The weights at the end, how far they moved, the last gradient's norm, and the logs."""
    keras.utils.set_random_seed(0)
    with strategy.scope():
        model = make()
        optimizer = make_optimizer(model, 2e-3, weight_decay=0.1, clip_norm=0.05)
        # Adam divides a gradient by its size: of one that is 0 but for rounding it makes a step.
        optimizer.epsilon = 1e-3
        # Without momentum, it keeps the last gradient as it was clipped.
        optimizer.beta_1 = 0.0
        model.accumulation_steps = parts
        model.compile(optimizer, jit_compile=False)
    before = [v.numpy() for v in model.trainable_variables]
    dev = dataset("tagging", [3, 4, 1]) if isinstance(model, Distiller) else None
    history = model.fit(data, validation_data=dev, verbose=0, shuffle=False).history
    after = [v.numpy() for v in model.trainable_variables]
    norm = np.sqrt(sum(np.sum(np.square(m.numpy())) for m in optimizer._momentums))
    logs = {key: value[0] for key, value in history.items()}
    return after, largest_difference(before, after), norm, logs


def compare(strategies, data, make, parts=1):
    """One device, and several whose batches are read in parts."""
    one, moved, norm, logs = train(strategies[0], data, make)
    other, _, other_norm, other_logs = train(strategies[1], data, make, parts=parts)
    assert logs.keys() == other_logs.keys()
    return {
        "difference": largest_difference(one, other),
        "moved": moved,
        "norms": [norm, other_norm],
        "logs": {key: [logs[key], other_logs[key]] for key in logs},
    }


class Killed(Exception):
    pass


def resume(strategy):
    """The largest difference between a whole run and one that was killed in its second epoch."""
    rng = np.random.default_rng(0)
    rows = [rng.integers(1, V, n).tolist() for n in rng.integers(1, L, 13)]
    encodings = [Encoding(row, [0] * len(row), truncated=False) for row in rows]
    data = LengthBatches(encodings, 4, [e.token_ids[0] % 2 for e in encodings], shuffle=True)
    config = TrainingConfig(
        epochs=2, batch_size=4, learning_rate=1e-2, checkpoint_steps=3, ema_decay=0.5, log_steps=4
    )

    def run(folder, evaluate=None):
        keras.utils.set_random_seed(0)
        with strategy.scope():
            model = text_model(TASKS["classification"], dropout=0.5)
            trained = FineTuner(model, TASKS["classification"])
            compile_model(config, trained, len(data))
        folder = RunFolder(folder, {})
        fit(trained, data, config, folder, lambda best: None, evaluate=evaluate)
        lines = [{k: v for k, v in m.items() if k not in OF_A_RUN} for m in folder.steps()]
        return [w.numpy() for w in model.weights], metrics_of(folder), lines

    epochs = []

    def kill():
        epochs.append(1)
        if len(epochs) == 2:
            raise Killed
        return {}

    with tempfile.TemporaryDirectory() as place:
        whole, whole_logs, lines = run(f"{place}/whole")
        with contextlib.suppress(Killed):
            run(f"{place}/broken", kill)
        # What is left is the state after 3 of the second epoch's 4 steps.
        resumed, logs, resumed_lines = run(f"{place}/broken")
    return {
        "difference": largest_difference(whole, resumed),
        "logs": [max(abs(a[k] - b[k]) for k in a) for a, b in zip(whole_logs, logs, strict=True)],
        "lines": [lines, resumed_lines],
        "losses": [m["loss"] for m in logs],
    }


def overflow(strategy):
    """How far the weights move by a batch of which the second replica's share overflows, and by
    further batches; and the loss scale after both.
    """
    keras.config.set_dtype_policy("mixed_float16")
    keras.utils.set_random_seed(0)
    with strategy.scope():
        model = finetuner("regression")
        model.compile(make_optimizer(model, 1e-2), jit_compile=False)
    start = [v.numpy() for v in model.trainable_variables]
    moved, scales = [], []
    for spoiled in (True, False):

        def spoil(x, labels, weights, spoiled=spoiled):
            return x, labels + [0, 1e30 if spoiled else 0], weights

        model.fit(dataset("regression", [2]).map(spoil), verbose=0, shuffle=False)
        moved.append(largest_difference(start, [v.numpy() for v in model.trainable_variables]))
        scales.append(model.optimizer.dynamic_scale.numpy())
    return {"moved": moved, "scales": scales}


def ranges(strategy):
    """The ranges of a fake-quantised layer of which the replicas see the numbers 1 and 2."""
    with strategy.scope():
        layer = Dense(2, name="layer")
        layer.build((None, 2))
        fake_quantize(layer)
    inputs = strategy.experimental_distribute_values_from_function(
        lambda context: tf.fill((1, 2), 1.0 + context.replica_id_in_sync_group)
    )
    strategy.run(tf.function(lambda x: layer(x, training=True)), args=(inputs,))
    return get_ranges(layer)


def main():
    strategies = make_strategy("one_device"), make_strategy("mirrored")
    mirrored = strategies[1]
    found, tagged = {}, dataset("tagging", SIZES)
    for name in COMPARED:
        make = functools.partial(finetuner, name)
        found[name] = compare(strategies, dataset(name, SIZES), make)
    found["adversarial"] = compare(strategies, tagged, lambda: finetuner("tagging", True))
    found["distilling"] = compare(strategies, tagged, distiller)
    recomputed = functools.partial(tagger, recompute_blocks)
    found["recomputed in parts"] = compare(strategies, tagged, recomputed, parts=2)
    adapted = functools.partial(tagger, lambda model: add_lora(model, 2))
    found["adapted"] = compare(strategies, tagged, adapted)
    for name, parts in PRETRAININGS.items():
        _, batches = make_pretraining(*OBJECTIVES[name])
        data = batches.dataset().repeat().take(50)

        def pretrainer(name=name):
            return make_pretraining(*OBJECTIVES[name])[0]

        found[name] = compare(strategies, data, pretrainer, parts)
    found["resume"] = resume(mirrored)
    found["overflow"] = overflow(mirrored)
    found["ranges"] = ranges(mirrored)
    found["replicas"] = mirrored.num_replicas_in_sync
    found["same"] = make_strategy("mirrored") is mirrored
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        json.dump(found, file, default=float)


if __name__ == "__main__":
    main()
