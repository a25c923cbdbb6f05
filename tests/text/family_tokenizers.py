"""A tokenizer of each family, and texts to train them on."""

import functools
import io
import json

from tfnlp.text import train_tokenizer

TEXTS = [
    "The quick brown fox jumps over the lazy dog .",
    "정말 재미있는 영화였다 ! 다시 보고 싶다",
    "a naïve café , don't you think ?  two  spaces",
    "",
] * 5
HARD_TEXTS = [
    *TEXTS[:2],
    "a naïve café , don't you think ?  two  spaces\tand a tab",
    "<unk> @-@ 1,000 ``quoted'' ½ ﬁne 東京 😀",
    "",
    "  leading and trailing  ",
] * 3
KINDS = {
    "bert": "wordpiece",
    **dict.fromkeys(("gpt2", "roberta", "deberta", "modernbert"), "bpe"),
    **dict.fromkeys(("albert", "xlnet", "deberta-v2", "xlm-roberta"), "unigram"),
}
FAMILIES = tuple(KINDS)
# The classes of `transformers`.
CLASSES = {
    "bert": "BertTokenizer",
    "gpt2": "GPT2Tokenizer",
    "roberta": "RobertaTokenizer",
    "deberta": "DebertaTokenizer",
    "modernbert": "PreTrainedTokenizerFast",
    "albert": "AlbertTokenizer",
    "xlnet": "XLNetTokenizer",
    "deberta-v2": "DebertaV2Tokenizer",
    "xlm-roberta": "XLMRobertaTokenizer",
}


def trained(family, texts, size):
    return train_tokenizer(texts, KINDS[family], size, family)[0]


@functools.cache
def tokenizer_of(family):
    """The tokenizer of a family, learned from TEXTS."""
    return trained(family, TEXTS, 330)


def sentencepiece_model(texts, size, **options):
    """Return the bytes of a unigram model that SentencePiece's own trainer learns."""
    import sentencepiece

    model = io.BytesIO()
    options |= {"vocab_size": size, "hard_vocab_limit": False, "minloglevel": 2}
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts), model_writer=model, **options
    )
    return model.getvalue()


def saved(tokenizer, folder, family):
    """Write a tokenizer and a model's config beside it; return the folder."""
    tokenizer.save(folder)
    (folder / "config.json").write_text(json.dumps({"model_type": family}))
    return folder


def ids_of(tokenizer, texts):
    return [encoding.token_ids for encoding in tokenizer.encode(texts)]


def theirs_of(folder, family):
    """Load a folder's tokenizer by `transformers`."""
    import transformers

    return getattr(transformers, CLASSES[family]).from_pretrained(folder)
