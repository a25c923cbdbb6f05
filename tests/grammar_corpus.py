"""A small corpus of English and Korean reviews from a grammar: what tests train on.

Every review has an opinion that its words decide: plain, negated ("not dull"), or turned by
a second clause that counts ("slow at first, but the ending is superb").
"""

import random

LABELS = ("negative", "positive")

_EN_THINGS = ["film", "story", "cast", "ending", "music", "script", "camera work", "dialogue"]
_EN_WORDS = {
    1: ["superb", "moving", "funny", "clever", "gripping", "charming", "fresh", "warm"],
    0: ["dull", "clumsy", "boring", "hollow", "tired", "confusing", "lifeless", "cold"],
}
_EN_STRENGTH = ["", "really ", "quite ", "utterly ", "simply ", "rather "]
_EN_START = ["", "honestly , ", "in short , ", "to me ", "we felt that ", "on a second look , "]
_EN_END = [".", " !", " , all in all .", " from start to end .", " , as my friends agreed ."]

_KO_THINGS = ["영화", "이야기", "배우들", "결말", "음악", "각본", "영상", "대사"]
# Adjective stems with the endings that state and deny them.
_KO_WORDS = {
    1: [("훌륭하다", "훌륭하지"), ("감동적이다", "감동적이지"), ("재미있다", "재미있지")]
    + [("신선하다", "신선하지"), ("따뜻하다", "따뜻하지"), ("완벽하다", "완벽하지")],
    0: [("지루하다", "지루하지"), ("어색하다", "어색하지"), ("뻔하다", "뻔하지")]
    + [("허술하다", "허술하지"), ("답답하다", "답답하지"), ("차갑다", "차갑지")],
}
_KO_STRENGTH = ["", "정말 ", "아주 ", "꽤 ", "너무 ", "무척 "]
_KO_START = ["", "솔직히 ", "한마디로 ", "내 생각엔 ", "다시 봐도 "]
_KO_END = [".", "!", " ㅎㅎ", "...", " 다들 그렇게 말한다."]


def write_reviews(folder, train=4000, dev=500, test=500, seed=0):
    """Writes train.tsv, dev.tsv and test.tsv with the columns sentence and label.

    Args:
        folder: a `pathlib.Path`, created if need be.
        train, dev, test: numbers of examples; no review is in two files.
        seed: of the choice.
    """
    folder.mkdir(parents=True, exist_ok=True)
    reviews = iter(make_reviews(train + dev + test, seed))
    for name, count in (("train", train), ("dev", dev), ("test", test)):
        rows = ["\t".join(next(reviews)) for _ in range(count)]
        text = "\n".join(["sentence\tlabel", *rows]) + "\n"
        (folder / f"{name}.tsv").write_text(text, encoding="utf-8")


def make_reviews(count, seed=0):
    """`count` different (review, label) pairs, half of them Korean."""
    rng = random.Random(seed)
    found = {}
    while len(found) < count:
        label = rng.randrange(2)
        make = _english if len(found) % 2 else _korean
        found.setdefault(make(rng, label), LABELS[label])
    return list(found.items())


def _english(rng, label):
    def opinion(value, thing):
        strength = rng.choice(_EN_STRENGTH)
        if rng.random() < 0.3:
            return f"the {thing} is not {strength}{rng.choice(_EN_WORDS[1 - value])}"
        return f"the {thing} is {strength}{rng.choice(_EN_WORDS[value])}"

    thing, other = rng.sample(_EN_THINGS, 2)
    text = opinion(label, thing)
    if rng.random() < 0.4:
        text = f"{opinion(1 - label, other)} , but {text}"
    return rng.choice(_EN_START) + text + rng.choice(_EN_END)


def _korean(rng, label):
    def opinion(value, thing):
        strength = rng.choice(_KO_STRENGTH)
        subject = f"{thing}{'은' if _has_final(thing) else '는'}"
        if rng.random() < 0.3:
            return f"{subject} {strength}{rng.choice(_KO_WORDS[1 - value])[1]} 않다"
        return f"{subject} {strength}{rng.choice(_KO_WORDS[value])[0]}"

    thing, other = rng.sample(_KO_THINGS, 2)
    text = opinion(label, thing)
    if rng.random() < 0.4:
        text = f"{opinion(1 - label, other)} 하지만 {text}"
    return rng.choice(_KO_START) + text + rng.choice(_KO_END)


def _has_final(word):
    """Whether the last syllable ends in a consonant, which chooses the particle."""
    return (ord(word[-1]) - 0xAC00) % 28 > 0
