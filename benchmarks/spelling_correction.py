"""Share of misspelt words that n-grams restore, and of right words that they change.

    python -m benchmarks.spelling_correction --train=train.txt --test=test.txt
    python -m benchmarks.spelling_correction --train=nsmc/unlabelled.txt.gz --test=nsmc/test.tsv \\
        --unit=spaces

One word in each of --sentences texts, of at least 4 letters and in the training texts, gets one
edit at random: a letter is added, dropped, changed or swapped with the next. Letters of Hangul are
jamo, and added ones are drawn from the word's own text. The nearest spelling, by edits or by the
cosine of `NearestSpelling`, is that of this word alone.
"""

import random
import unicodedata

import numpy as np
from absl import flags

from recipes.flags import dataclass_flags
from recipes.shell import entry_point
from tfnlp import baselines, text
from tfnlp.baselines.spelling_correction import letters_of

FLAGS = flags.FLAGS
flags.DEFINE_string("train", None, "Texts to count.")
flags.DEFINE_string("test", None, "Texts to misspell.")
flags.DEFINE_enum("unit", "words", ["words", "spaces"], "What words are.")
flags.DEFINE_integer("sentences", 300, "Texts to correct.", 1)
flags.DEFINE_integer("max_words", 20, "Words of a text at most; it is cut behind them.", 1)
flags.DEFINE_list("orders", ["1", "2", "3"], "Orders of n-grams.")
dataclass_flags.define(baselines.SpellingSettings)
flags.mark_flags_as_required(["train", "test"])


def main():
    split = baselines.SPLITTERS[FLAGS.unit]
    train, test = (
        map(split, text.read_every_text(p, "sentence")) for p in (FLAGS.train, FLAGS.test)
    )
    train, draw = list(train), random.Random(0)
    known = {word for words in train for word in words}
    rows = [row for words in test if (row := misspelt(words[: FLAGS.max_words], known, draw))]
    rows = draw.sample(rows, min(FLAGS.sentences, len(rows)))
    settings = dataclass_flags.read(baselines.SpellingSettings)
    cosines = baselines.NearestSpelling(sorted(known))
    restored = [
        cosines.nearest(wrong[place])[0][0] == words[place] for words, wrong, place in rows
    ]
    print(f"nearest by cosine: {np.mean(restored):.1%} restored")
    for order in map(int, FLAGS.orders):
        model = baselines.NgramModel(train, baselines.NgramSettings(order))
        corrector = baselines.SpellingCorrector(model, settings)
        restored, changed = [], []
        for words, wrong, place in rows:
            corrected = corrector.correct(wrong)
            right = [a == b for a, b in zip(words, corrected, strict=True)]
            restored.append(right.pop(place))
            changed += [not same for same in right]
        print(f"{order}-grams: {np.mean(restored):.1%} restored, {np.mean(changed):.2%} changed")


def misspelt(words, known, draw):
    """Return words, the same with one edit in one of them, and its place; None without one."""
    places = [i for i, word in enumerate(words) if word in known and len(letters_of(word)) >= 4]
    if not places:
        return None
    place = draw.choice(places)
    letters, alphabet = list(letters_of(words[place])), letters_of("".join(words))
    while (wrong := edited(letters, alphabet, draw)) == words[place]:
        pass
    return words, [*words[:place], wrong, *words[place + 1 :]], place


def edited(letters, alphabet, draw):
    """Return letters with one edit, as a composed string."""
    i, kind = draw.randrange(len(letters) - 1), draw.randrange(4)
    new, rest = draw.choice(alphabet), letters[i:]
    changed = ([new, *rest], rest[1:], [new, *rest[1:]], [rest[1], rest[0], *rest[2:]])[kind]
    return unicodedata.normalize("NFC", "".join(letters[:i] + changed))


if __name__ == "__main__":
    entry_point.run(main)
