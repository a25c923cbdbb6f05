"""Hostile random strings, and the agreement of exported files with Keras on them."""

import random

LONG = 100_000
FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466"
PARTS = {
    "control": [chr(i) for i in (*range(32), *range(127, 160))],
    "surrogates": [chr(i) for i in range(0xD800, 0xE000, 37)],
    "directions": [
        *"\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069",
        "\u0627\u0644",
        "\u05d0",
    ],
    "emoji": [
        FAMILY,
        "\U0001f44d\U0001f3fd",
        "\U0001f1f0\U0001f1f7",
        "\u2764\ufe0f",
        "\u200d",
        "\ufe0f",
    ],
    "combining": ["a", "\u0301", "\u0323", "\u1100", "\u1161", "\u11a8", "\u0e33"],
    "spaces": [*" \t\n\r\u00a0\u2003\u3000\u200b\ufeff\u2028", "word"],
    "words": [
        "film",
        "good",
        "not",
        "UNBELIEVABLE",
        "\uc601\ud654",
        "\uc9c0\ub8e8\ud558\ub2e4",
        "\u3160\u3160",
        "[MASK]",
        "[SEP]",
        "##s",
        "'",
        "!!",
        "1999",
    ],
}


def hostile_strings(count, seed=0):
    """Return a list of `count` strings; every fiftieth is empty, every thousandth long."""
    draw = random.Random(seed)
    kinds = [*PARTS, "any", "mixed"]
    found = []
    for i in range(count):
        if i % 50 == 0:
            found.append("")
            continue
        kind = kinds[i % len(kinds)]
        size = draw.choice((1, 2, 5, 20, 80, 300))
        if kind == "any":
            parts = (chr(draw.randrange(0x110000)) for _ in range(size))
        else:
            pool = PARTS.get(kind) or [draw.choice(PARTS[k]) for k in PARTS]
            parts = (draw.choice(pool) for _ in range(size))
        text = draw.choice(("", " ")).join(parts)
        if i % 1000 == 1:
            text = (text or "x") * (LONG // max(len(text), 1) + 1)
            text = text[:LONG]
        found.append(text)
    return found


def agreements(model, tokenizer, labels, folder, texts, quantizations, max_length):
    """Return {quantisation: share of texts with the Keras model's label}."""
    from distill.export.options import Export
    from distill.export.tflite import export_tflite
    from distill.runtime import TextClassifier
    from tfnlp.text import LengthBatches
    from tfnlp.training.run.inference import predict_batches

    encodings = tokenizer.encode(texts, max_length=max_length)
    logits = predict_batches(model, LengthBatches(encodings, 32))["logits"]
    expected = [labels[row.argmax()] for row in logits]
    shares = {}
    for quantization in quantizations:
        path = folder / f"{quantization}.tflite"
        export_tflite(model, path, tokenizer, labels, Export(quantization, max_length))
        found = [answer.label for answer in TextClassifier(path).classify(texts)]
        same = sum(a == b for a, b in zip(found, expected, strict=True))
        shares[quantization] = same / len(texts)
    return shares
