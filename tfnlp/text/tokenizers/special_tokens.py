"""Special tokens of each family, and their templates for texts and pairs."""

import dataclasses

import tokenizers
from tokenizers import processors

from tfnlp.utils.errors import InputError


@dataclasses.dataclass(frozen=True)
class SpecialTokens:
    """The special tokens of a family.

    Args:
        tokenizer_class: the class name in tokenizer_config.json.
        tokens: {role: token}, such as {"pad_token": "<pad>"}.
        single: the special-token template of a text, in the notation of `tokenizers`: `$A` for the
            text, `:1` for segment 1. Those without any are of plain texts, or the files have them.
        pair: the special-token template of a pair.
        mask_takes_space: whether the mask token absorbs the space before it.
    """

    tokenizer_class: str
    tokens: dict
    single: str = "$A:0"
    pair: str = "$A:0 $B:1"
    mask_takes_space: bool = True

    def check_in(self, vocabulary):
        """Raise an `InputError` if a vocabulary lacks a token; "[MASK]" may be added later."""
        for token in self.tokens.values():
            if token not in vocabulary and token != "[MASK]":
                raise InputError(
                    f"The vocabulary lacks {token}, which the input of a {self.tokenizer_class} "
                    "needs."
                )

    def add_to(self, engine):
        """Add the special tokens and templates to an engine of `tokenizers`."""
        for role, token in self.tokens.items():
            left = role == "mask_token" and self.mask_takes_space
            engine.add_special_tokens(
                [tokenizers.AddedToken(token, lstrip=left, normalized=False, special=True)]
            )
        engine.post_processor = self.template(engine)

    def template(self, engine):
        """Return the post-processor that adds the special tokens to texts and pairs."""
        used = sorted({token for token in self.tokens.values() if token in self.pair})
        ids = [(token, engine.token_to_id(token)) for token in used]
        return processors.TemplateProcessing(self.single, self.pair, ids)


def _tokens(**tokens):
    return {f"{role}_token": token for role, token in tokens.items()}


def _bracketed(unk="[UNK]", pad="[PAD]"):
    return _tokens(pad=pad, unk=unk, cls="[CLS]", sep="[SEP]", mask="[MASK]")


_BERT_TEMPLATES = ("[CLS]:0 $A:0 [SEP]:0", "[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1")
_ROBERTA_TEMPLATES = ("<s>:0 $A:0 </s>:0", "<s>:0 $A:0 </s>:0 </s>:0 $B:0 </s>:0")

# Keys are the model_type of config.json.
SPECIAL_TOKENS = {
    "bert": SpecialTokens("BertTokenizer", _bracketed(), *_BERT_TEMPLATES),
    "gpt2": SpecialTokens("GPT2Tokenizer", _tokens(pad="<|endoftext|>", unk="<|endoftext|>")),
    "roberta": SpecialTokens(
        "RobertaTokenizer",
        _tokens(cls="<s>", pad="<pad>", sep="</s>", unk="<unk>", mask="<mask>"),
        *_ROBERTA_TEMPLATES,
    ),
    "elmo": SpecialTokens("ElmoTokenizer", _bracketed(), *_BERT_TEMPLATES),
    "deberta": SpecialTokens("DebertaTokenizer", _bracketed(), *_BERT_TEMPLATES),
    # Its class says nothing of the family.
    "modernbert": SpecialTokens("PreTrainedTokenizerFast", _bracketed(), *_BERT_TEMPLATES),
    # Of mmBERT, whose body is a ModernBERT. Gemma's class would split texts by its own rules.
    "gemma": SpecialTokens(
        "PreTrainedTokenizerFast",
        _tokens(pad="<pad>", eos="<eos>", bos="<bos>", unk="<unk>", mask="<mask>")
        | _tokens(cls="<bos>", sep="<eos>"),
    ),
    "albert": SpecialTokens("AlbertTokenizer", _bracketed("<unk>", "<pad>"), *_BERT_TEMPLATES),
    "xlnet": SpecialTokens(
        "XLNetTokenizer",
        _tokens(unk="<unk>", bos="<s>", eos="</s>", cls="<cls>", sep="<sep>")
        | _tokens(pad="<pad>", mask="<mask>"),
        "$A:0 <sep>:0 <cls>:2",
        "$A:0 <sep>:0 $B:1 <sep>:1 <cls>:2",
    ),
    "deberta-v2": SpecialTokens(
        "DebertaV2Tokenizer", _bracketed(), *_BERT_TEMPLATES, mask_takes_space=False
    ),
    "xlm-roberta": SpecialTokens(
        "XLMRobertaTokenizer",
        _tokens(bos="<s>", pad="<pad>", eos="</s>", unk="<unk>")
        | _tokens(cls="<s>", sep="</s>", mask="<mask>"),
        *_ROBERTA_TEMPLATES,
    ),
    "marian": SpecialTokens(
        "MarianTokenizer",
        _tokens(eos="</s>", unk="<unk>", pad="<pad>"),
        "$A:0 </s>:0",
        "$A:0 $B:1 </s>:1",
    ),
}

WORDPIECE_CLASSES = ("BertTokenizer", "DistilBertTokenizer", "ElectraTokenizer")
# The families of the tokenizer classes in tokenizer_config.json. Names are without "Fast".
CLASSES = {tokens.tokenizer_class: family for family, tokens in SPECIAL_TOKENS.items()}
CLASSES |= dict.fromkeys(WORDPIECE_CLASSES, "bert")

# Candidates for the end token, in order of preference.
END_TOKENS = ("<eod>", "<|endoftext|>", "<eos>", "</s>", "[SEP]", "<sep>")


def end_token_id(tokenizer):
    """Return the id of the token that ends a text or document, or None if there is none."""
    ids = map(tokenizer.token_id, END_TOKENS)
    return next((i for i in ids if i is not None), None)


def with_target(tokenizer, target_tokenizer, end_id):
    """Return the target tokenizer of a translator, and the id that ends a source.

    Args:
        tokenizer: the tokenizer of the sources.
        target_tokenizer: the tokenizer of the targets; where None, `tokenizer.target` if there is
            one (`MarianTokenizer`), else `tokenizer`.
        end_id: the end token of the model, which also ends sources if both sides share a
            tokenizer.

    Returns:
        The target tokenizer, and the id that ends a source.

    Raises:
        InputError: if there is no end token for the sources.
    """
    if target_tokenizer is None:
        target_tokenizer = getattr(tokenizer, "target", tokenizer)
    if target_tokenizer is not tokenizer:
        end_id = end_token_id(tokenizer)
    if end_id is None:
        raise InputError(
            f"The tokenizer of the sources lacks an end token ({', '.join(END_TOKENS)}), without "
            "which no source ends; give one that has it."
        )
    return target_tokenizer, end_id


def plain_ids(tokenizer, texts):
    """Return the ids of each text without special tokens around it, a list of lists."""
    return [row.token_ids[:-1] for row in tokenizer.encode_closed(texts, 0)]
