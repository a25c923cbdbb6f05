"""The tokens of translation files where they have read what Keras has: the reference so far."""

import time

import numpy as np

from tfnlp.models import config_of, max_positions
from tfnlp.tasks import Translation


def forced(model, tokenizer, texts):
    """Of each text its source, what the decoder reads, and Keras' likeliest token after each."""
    longest = max_positions(model)
    batches = Translation().batches(texts, tokenizer, config_of(model), 4096, longest)
    found = []
    for inputs, labels in batches.epoch():
        best = np.argmax(model(inputs)["logits"], axis=-1)
        for i, row in enumerate(labels):
            real = inputs["encoder_padding_mask"][i] > 0
            count = int(np.sum(row >= 0))
            source = inputs["encoder_token_ids"][i][real]
            found.append((source, inputs["decoder_token_ids"][i][:count], best[i][:count]))
    return found


def measured(file, examples):
    """The share of the file's likeliest tokens that are Keras', and ms to the first."""
    same, times, longest = [], [], file.max_new_tokens
    for source, read, best in examples:
        read, best = read[:longest], best[:longest]  # behind them the caches have no place
        began = time.perf_counter()
        logits = [file.decoder.start_from(source, read[0])]
        times.append(1e3 * (time.perf_counter() - began))
        logits += [file.decoder.step([token], [0])[0] for token in read[1:]]
        same += list(np.argmax(logits, axis=-1) == best)
    return float(np.mean(same)), float(np.median(times))
