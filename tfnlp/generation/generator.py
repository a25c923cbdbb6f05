"""Continuation of prompts by a language model, from texts to texts."""

from tfnlp.generation.batched_search import Searcher, find_end_token
from tfnlp.generation.continuations import Generated, check_prompts, continuation
from tfnlp.generation.decoder_selection import decoder_of
from tfnlp.generation.generation_settings import Constraints, Greedy
from tfnlp.generation.search_algorithms import SearchSettings
from tfnlp.models import check_vocabulary
from tfnlp.objectives.batches.special_token_template import plain_ids
from tfnlp.text.reading.text_arguments import as_texts
from tfnlp.utils.errors import InputError


class Generator(Searcher):
    """Continuation of prompts by a causal language model.

    Args:
        model: a GPT, a GPT-2, a Transformer-XL or a recurrent network with the head "causal_lm",
            or an XLNet with "permutation_lm".
        tokenizer: its tokenizer.
        search: a `Greedy`, `Beam` or `Sample`; greedy where None.
        constraints: a `Constraints`; none where None.
        max_new_tokens: the most generated tokens.
        batch_size: prompts in a batch.
        end_token: the token that ends a text; where None, the separator of documents in
            pretraining (`END_TOKENS`).

    Raises:
        InputError: if the model has another family or head, the tokenizer is not the model's or
            has no end token, or settings contradict each other.
    """

    def __init__(
        self,
        model,
        tokenizer,
        search=None,
        constraints=None,
        max_new_tokens=64,
        batch_size=16,
        end_token=None,
    ):
        search, constraints = search or Greedy(), constraints or Constraints()
        decoder = decoder_of(model, translates=False)
        check_vocabulary(tokenizer, model)
        self.tokenizer = tokenizer
        end = find_end_token(tokenizer, end_token)
        settings = SearchSettings(search, constraints, max_new_tokens, end, pad=end)
        super().__init__(decoder, settings, batch_size)

    def __call__(self, prompts):
        """Return a list of `Generated` for each prompt, the best first.

        Args:
            prompts: a list of strings; an empty one starts a new text.

        Raises:
            InputError: if a prompt is not a string, or too long for the model.
        """
        prompts = as_texts(prompts, "prompts")
        return [
            [
                Generated(continuation(self.tokenizer, prompt, ids), tuple(ids), *rest)
                for ids, *rest in texts
            ]
            for prompt, texts in self.continue_ids(self._ids(prompts))
        ]

    def continue_ids(self, prompts):
        """Return for each prompt its ids and a list of (ids, ended by the end token, score).

        Args:
            prompts: a list of lists of ids, none empty.
        """
        check_prompts(prompts, self.settings.steps, self.decoder.max_length)
        return list(zip(prompts, self._find(prompts), strict=True))

    def _ids(self, prompts):
        """Return the ids of each prompt without special tokens; the end token if empty."""
        return [ids or [self.end] for ids in plain_ids(self.tokenizer, prompts)]


def generate(model, tokenizer, prompts, search=None, **options):
    """Return the texts of a `Generator` of these options, which in repeated calls compiles once.

    Args:
        prompts: a list of strings.
        model, tokenizer, search, options: as in `Generator`.
    """
    return Generator(model, tokenizer, search, **options)(prompts)


def forbidden_ids(tokenizer, words):
    """Return the `forbidden` ids of `Constraints` that exclude words.

    They are a tuple of tuples of ids: each word as tokenised at the beginning of a text, and after
    a space, where its tokens may differ.

    Raises:
        InputError: if a word is empty or has no token.
    """
    words = as_texts(words, "words")
    rows = plain_ids(tokenizer, [*words, *(f" {word}" for word in words)])
    for i, (word, ids) in enumerate(zip(words, rows, strict=False)):
        if not ids:
            raise InputError(
                f"words[{i}]={word!r} has no token that could be forbidden; leave it out."
            )
    return tuple(dict.fromkeys(map(tuple, rows)))
