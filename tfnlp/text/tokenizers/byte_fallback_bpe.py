"""BPE of SentencePiece's kind with bytes for unknown characters, of Gemma 2 and mmBERT."""

import json

from tfnlp.text.tokenizers.added_tokens import read_added_tokens
from tfnlp.text.tokenizers.special_tokens import SPECIAL_TOKENS
from tfnlp.text.tokenizers.tokenizer import Tokenizer
from tfnlp.text.tokenizers.tokenizer_files import read_engine
from tfnlp.text.tokenizers.unframed import engine_of

FLAGS = ("special", "lstrip", "rstrip", "normalized", "single_word")
# The tokens of bytes, in their order.
BYTES = tuple(f"<0x{byte:02X}>" for byte in range(256))


class ByteFallbackBpeTokenizer(Tokenizer):
    """BPE whose tokenizer.json says how texts are normalised, split and framed.

    A character that the vocabulary lacks is the tokens of its bytes in UTF-8, such as "<0xEB>"
    (Kudo and Richardson 2018, 'SentencePiece'; its option `byte_fallback`).

    Args:
        content: of the tokenizer.json, a dict.

    Raises:
        InputError: if `tokenizers` cannot read it, or it lacks a special token.
    """

    family = "gemma"
    special_tokens = SPECIAL_TOKENS[family]

    def __init__(self, content):
        engine = engine_of(content)
        self.special_tokens.check_in(engine.get_vocab())
        super().__init__(engine, self.special_tokens.tokens["pad_token"])

    @classmethod
    def _read(cls, folder, family):
        content = read_engine(folder, "BPE")
        # `transformers` takes the flags of tokenizer_config.json, where <mask> takes its space.
        added = {token.content: token for _, token, _ in read_added_tokens(folder)}
        for entry in content.get("added_tokens") or []:
            entry |= {name: getattr(added[entry["content"]], name) for name in FLAGS}
        return {"content": content}, {}

    def files(self):
        """Return {name: text} of the files beside tokenizer_config.json."""
        content = json.loads(self.to_json())
        return {"tokenizer.json": json.dumps(content, ensure_ascii=False, indent=2)}
