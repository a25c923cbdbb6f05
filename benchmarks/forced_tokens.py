"""Agreement of exported translators with Keras on the next token, under teacher forcing."""

import time

import numpy as np

from tfnlp.models import config_of, max_positions
from tfnlp.tasks import Translation


def forced(model, tokenizer, texts):
    """Return (source ids, decoder inputs, Keras' most probable next tokens) of each text."""
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
    """Return the share of a file's most probable tokens that are Keras', and ms to the first."""
    same, times, longest = [], [], file.settings.steps
    for source, read, best in examples:
        read, best = read[:longest], best[:longest]  # the file's caches end there
        began = time.perf_counter()
        logits = [file.decoder.start_from(source, read[0])]
        times.append(1e3 * (time.perf_counter() - began))
        logits += [file.decoder.step([token], [0])[0] for token in read[1:]]
        same += list(np.argmax(logits, axis=-1) == best)
    return float(np.mean(same)), float(np.median(times))
