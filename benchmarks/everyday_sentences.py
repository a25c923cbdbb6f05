"""Accuracy of sentiment models on forty everyday sentences that no corpus of films has.

    python -m benchmarks.everyday_sentences --models=demo/teacher/best,demo/model.tflite

Four kinds, ten each, half of them positive: plain ones, negations, comparisons, irony. They are
for a look at what a student of few texts understands, not for training or selection. The positive
label is the second of a model's two.
"""

from absl import app, flags

from distill import runtime
from tfnlp import pipelines
from tfnlp.utils.formatting import aligned

FLAGS = flags.FLAGS
flags.DEFINE_list("models", None, "Files or folders of classifiers of two labels.", required=True)

# {kind: (negative sentences, positive sentences)}
SENTENCES = {
    "plain": (
        (
            "my tea went cold while I waited for the waiter",
            "the battery dies before lunch",
            "we left the concert early with a headache",
            "this jacket fell apart in the first rain",
            "I have been on hold for two hours",
        ),
        (
            "the neighbours brought us soup when we were ill",
            "I slept like a baby in that hotel",
            "my son reads the book again every night",
            "the train was on time and almost empty",
            "you made my whole week",
        ),
    ),
    "negation": (
        (
            "I would not eat here a second time",
            "nobody at the table finished the dessert",
            "the update did not fix anything",
            "there was never a quiet moment in that office",
            "it is not what I had hoped for",
        ),
        (
            "there is nothing to complain about",
            "I could not put the book down",
            "the dentist did not hurt me at all",
            "we have not laughed this much in years",
            "you cannot go wrong with this lamp",
        ),
    ),
    "comparison": (
        (
            "the old model was better in every way",
            "I have had warmer welcomes at the tax office",
            "the photos look nicer than the real room",
            "even the free version does more",
            "my grandmother's phone is faster than this",
        ),
        (
            "it runs more quietly than any fan I owned",
            "the sequel beats the first part",
            "far cheaper than the other shop and just as fresh",
            "I expected less and got much more",
            "nothing else cleans my glasses as well",
        ),
    ),
    "irony": (
        (
            "great, another meeting that could have been a letter",
            "just what I needed, a flat tyre on my birthday",
            "what a brilliant idea to close the only lift",
            "thanks for the lovely weekend at the emergency room",
            "wonderful, the parcel arrived in two pieces",
        ),
        (
            "terrible news for my diet, this bakery is next door",
            "my only complaint is that the holiday had to end",
            "I hate how quickly the last page came",
            "a dangerous shop, I never leave with an empty bag",
            "too bad there are only three seasons of it",
        ),
    ),
}


def main(_):
    rows = [["model", *SENTENCES, "all"]]
    for path in FLAGS.models:
        load = runtime.load_runner if path.endswith(".tflite") else pipelines.load_runner
        rows.append([path, *shares(load(path))])
    print(*aligned(rows), sep="\n")


def shares(classifier):
    """Return the right answers of each kind and of all, texts such as "7 of 10"."""
    labels, counts = classifier.labels, []
    for negative, positive in SENTENCES.values():
        answers = [x.label for x in classifier.classify([*negative, *positive])]
        gold = [labels[0]] * len(negative) + [labels[1]] * len(positive)
        counts.append((sum(a == b for a, b in zip(answers, gold, strict=True)), len(gold)))
    counts.append(tuple(map(sum, zip(*counts, strict=True))))
    return [f"{right} of {total}" for right, total in counts]


if __name__ == "__main__":
    app.run(main)
