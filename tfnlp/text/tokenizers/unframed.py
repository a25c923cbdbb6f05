"""Tokenizers of static vectors, of any kind, which put no special tokens around a text."""

import json
import pathlib

import tokenizers

from tfnlp.text.tokenizers.tokenizer import Tokenizer
from tfnlp.utils.errors import InputError
from tfnlp.utils.files import read_json


class UnframedTokenizer(Tokenizer):
    """Tokenizer that a tokenizer.json alone describes, without special tokens around a text.

    Padding, which static vectors leave out, is the first token.

    Args:
        content: of the tokenizer.json, a dict.

    Raises:
        InputError: if `tokenizers` cannot read it.
    """

    def __init__(self, content):
        engine = engine_of(content | {"post_processor": None})
        super().__init__(engine, engine.id_to_token(0))

    @classmethod
    def from_folder(cls, folder, family=None):
        """Load the tokenizer.json of a folder."""
        return cls(read_json(pathlib.Path(folder) / "tokenizer.json"))

    def settings(self):
        return {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "pad_token": self.token(self.pad_token_id),
        }

    def files(self):
        """Return {name: text} of the files beside tokenizer_config.json."""
        return {"tokenizer.json": self.to_json()}


def engine_of(content):
    """Return the engine of a tokenizer.json, a dict, which neither cuts nor pads.

    Raises:
        InputError: if `tokenizers` cannot read it.
    """
    try:
        return tokenizers.Tokenizer.from_str(
            json.dumps(content | {"truncation": None, "padding": None})
        )
    except Exception as e:  # the engine raises no narrower type
        raise InputError(f"tokenizer.json cannot be read ({e}); get it anew.") from None
