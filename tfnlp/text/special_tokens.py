"""The special tokens of each family, and how they frame texts and pairs."""

import dataclasses

import tokenizers
from tokenizers import processors

from tfnlp.errors import InputError


@dataclasses.dataclass(frozen=True)
class SpecialTokens:
    """A family's special tokens.

    Args:
        tokenizer_class: what tokenizer_config.json calls the tokenizer.
        tokens: {role: token}, such as {"pad_token": "<pad>"}.
        single: the frame of a text, in the notation of `tokenizers`: `$A`, and `:1` for
            segment 1.
        pair: the frame of a pair.
        mask_takes_space: whether the mask token swallows the space before it.
    """

    tokenizer_class: str
    tokens: dict
    single: str
    pair: str
    mask_takes_space: bool = True

    def frame(self, engine):
        """Gives an engine the special tokens and the frames."""
        for role, token in self.tokens.items():
            left = role == "mask_token" and self.mask_takes_space
            engine.add_special_tokens(
                [tokenizers.AddedToken(token, lstrip=left, normalized=False, special=True)]
            )
        used = {t for t in self.tokens.values() if t in self.pair}
        engine.post_processor = processors.TemplateProcessing(
            single=self.single,
            pair=self.pair,
            special_tokens=[(t, engine.token_to_id(t)) for t in sorted(used)],
        )
        return engine


def _bracketed(unknown="[UNK]", pad="[PAD]"):
    return {
        "pad_token": pad,
        "unk_token": unknown,
        "cls_token": "[CLS]",
        "sep_token": "[SEP]",
        "mask_token": "[MASK]",
    }


_BERT_FRAMES = ("[CLS]:0 $A:0 [SEP]:0", "[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1")

# By the model_type of config.json.
SPECIAL_TOKENS = {
    "gpt2": SpecialTokens(
        "GPT2Tokenizer",
        {"pad_token": "<|endoftext|>", "unk_token": "<|endoftext|>"},
        "$A:0",
        "$A:0 $B:1",
    ),
    "roberta": SpecialTokens(
        "RobertaTokenizer",
        {
            "cls_token": "<s>",
            "pad_token": "<pad>",
            "sep_token": "</s>",
            "unk_token": "<unk>",
            "mask_token": "<mask>",
        },
        "<s>:0 $A:0 </s>:0",
        "<s>:0 $A:0 </s>:0 </s>:0 $B:0 </s>:0",
    ),
    "deberta": SpecialTokens("DebertaTokenizer", _bracketed(), *_BERT_FRAMES),
    "albert": SpecialTokens("AlbertTokenizer", _bracketed("<unk>", "<pad>"), *_BERT_FRAMES),
    "xlnet": SpecialTokens(
        "XLNetTokenizer",
        {
            "unk_token": "<unk>",
            "bos_token": "<s>",
            "eos_token": "</s>",
            "cls_token": "<cls>",
            "sep_token": "<sep>",
            "pad_token": "<pad>",
            "mask_token": "<mask>",
        },
        "$A:0 <sep>:0 <cls>:2",
        "$A:0 <sep>:0 $B:1 <sep>:1 <cls>:2",
    ),
    "deberta-v2": SpecialTokens(
        "DebertaV2Tokenizer", _bracketed(), *_BERT_FRAMES, mask_takes_space=False
    ),
    "marian": SpecialTokens(
        "MarianTokenizer",
        {"eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"},
        "$A:0 </s>:0",
        "$A:0 $B:1 </s>:1",
    ),
}

# What ends a text, of the tokens that a tokenizer may have; the first of them.
END_TOKENS = ("<eod>", "<|endoftext|>", "<eos>", "</s>", "[SEP]", "<sep>")


def end_token_id(tokenizer):
    """The id of the token that ends a text or a document; None of a tokenizer without one."""
    found = map(tokenizer.token_id, END_TOKENS)
    return next((i for i in found if i is not None), None)


def with_target(tokenizer, target_tokenizer, end_id):
    """Of a translator's tokenizers that of the targets, and what ends a source.

    Args:
        tokenizer: of the sources.
        target_tokenizer: of the targets; where None `tokenizer.target`, if there is one
            (`MarianTokenizer`), else that of the sources.
        end_id: what ends the model's texts, and sources too where both have one tokenizer.

    Returns:
        The target's tokenizer, and an id.

    Raises:
        InputError: where the sources have a tokenizer of their own, without an end token.
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
