"""A tokenizer of each family, and texts to train them on."""

import functools
import io
import json

import tokenizers
from tokenizers import models, normalizers, pre_tokenizers, processors, trainers

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


def write_gemma_bpe(folder, texts, size):
    """Write the tokenizer of a small mmBERT to a folder, with the fields of the released ones."""
    special = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>"]
    symbols = ["\n", "\n\n", "▁▁", "<table>"]
    engine = tokenizers.Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    engine.normalizer = normalizers.Replace(" ", "▁")
    engine.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    first = [*special, *symbols, *(f"<0x{byte:02X}>" for byte in range(256))]
    trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=first, show_progress=False)
    engine.train_from_iterator(texts, trainer)
    ends = [(token, special.index(token)) for token in ("<bos>", "<eos>")]
    pair = "<bos>:0 $A:0 <eos>:0 $B:0 <eos>:0"
    engine.post_processor = processors.TemplateProcessing("<bos> $A <eos>", pair, ends)
    content = json.loads(engine.to_str())
    added = content["added_tokens"][: len(special) + len(symbols)]
    content["added_tokens"] = [x | {"special": x["content"] in special} for x in added]
    replaced = {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}
    decoders = [replaced, {"type": "ByteFallback"}, {"type": "Fuse"}]
    content["decoder"] = {"type": "Sequence", "decoders": decoders}
    (folder / "tokenizer.json").write_text(json.dumps(content))
    mask = {name: x for name, x in added[4].items() if name != "id"} | {"lstrip": True}
    roles = {f"{token.strip('<>')}_token": token for token in special}
    settings = {"tokenizer_class": "GemmaTokenizerFast", "added_tokens_decoder": {"4": mask}}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings | roles))
    (folder / "config.json").write_text('{"model_type": "modernbert"}')
    return folder


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
