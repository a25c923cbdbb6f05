"""Continuation of prompts by a language model, from texts to texts."""

from tfnlp.generation.batched_search import Searcher, find_end_tokens
from tfnlp.generation.continuations import check_prompts, continuation
from tfnlp.generation.decoder_selection import decoder_of
from tfnlp.generation.generation_settings import Constraints, Greedy, SearchSettings
from tfnlp.models import check_vocabulary
from tfnlp.text.reading.text_arguments import as_texts
from tfnlp.text.tokenizers.special_tokens import plain_ids


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
        end_token: the token that ends a text, or several; where None, the separator of documents
            in pretraining (`END_TOKENS`).
        stop_strings: strings that end a text, which is cut before them.

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
        stop_strings=(),
    ):
        search, constraints = search or Greedy(), constraints or Constraints()
        decoder = decoder_of(model, translates=False)
        check_vocabulary(tokenizer, model)
        self.tokenizer = tokenizer
        ends = find_end_tokens(tokenizer, end_token)
        settings = SearchSettings(
            search, constraints, max_new_tokens, ends, pad=ends[0], stop_strings=stop_strings
        )
        super().__init__(decoder, settings, batch_size)

    def __call__(self, prompts, on_token=None):
        """Return a list of `Generated` for each prompt, the best first.

        With `on_token` prompts are continued one after the other, and one text of each.

        Args:
            prompts: a list of strings; an empty one starts a new text.
            on_token: function that is called after each token, with the number of the prompt, the
                id and the text that it completes: whole characters, which together are the text.

        Raises:
            InputError: if a prompt is not a string, or too long for the model.
        """
        return self.continue_ids(self._ids(as_texts(prompts, "prompts")), on_token)

    def continue_ids(self, prompts, on_token=None):
        """Return what a call does, of a list of lists of ids, none empty."""
        check_prompts(prompts, self.settings.steps, self.decoder.max_length)
        each = self._each(prompts) if on_token is None else self._each_streamed(prompts, on_token)
        texts = dict(each)
        return [texts[number] for number in range(len(prompts))]

    def _ids(self, prompts):
        """Return the ids of each prompt without special tokens; the first end token if empty."""
        return [ids or [self.settings.ends[0]] for ids in plain_ids(self.tokenizer, prompts)]

    def _text_of(self, row, ids):
        return continuation(self.tokenizer, row, ids)
