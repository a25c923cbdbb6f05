"""Prompts as texts in, continuations as texts out."""

from tfnlp.errors import InputError
from tfnlp.generation.decoders import decoder_of
from tfnlp.generation.searcher import Searcher, find_end_token
from tfnlp.models import check_vocabulary
from tfnlp.objectives.frame import Frame
from tfnlp.searches import Constraints, Greedy
from tfnlp.text.continuations import Generated, check_prompts, continuation, unframed_ids
from tfnlp.text.texts import as_texts


class Generator(Searcher):
    """Continues prompts by a causal language model.

    Args:
        model: a GPT, a GPT-2, a Transformer-XL or a recurrent network with the head "causal_lm",
            or an XLNet with "permutation_lm".
        tokenizer: its tokenizer.
        search: a `Greedy`, `Beam` or `Sample`; greedy where None.
        constraints: a `Constraints`; none where None.
        max_new_tokens: the most tokens that are written.
        batch_size: prompts in a batch.
        end_token: the token that ends a text; what stands between the documents of pretraining
            (`END_TOKENS`) where None.

    Raises:
        InputError: for a model of another family or head, a tokenizer that is not the model's or
            has no end token, and settings that contradict each other.
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
        decoder = decoder_of(model)
        if decoder.start_token_id is not None:
            raise InputError(
                f"The model is a {model.name}, which makes a text of another and does not go on "
                "from a prompt; give it to a Translator."
            )
        check_vocabulary(tokenizer, model)
        self.tokenizer = tokenizer
        end = find_end_token(tokenizer, end_token)
        super().__init__(decoder, search, constraints, max_new_tokens, batch_size, end, end)

    def __call__(self, prompts):
        """Continues prompts.

        Args:
            prompts: a list of strings; an empty one is a text from its beginning.

        Returns:
            A list of `Generated` for each prompt, the best first.

        Raises:
            InputError: if a prompt is not a string, or too long for the model.
        """
        prompts = as_texts(prompts, "prompts")
        found = self.continue_ids(self._ids(prompts))
        return [[self._generated(ids, *one) for one in texts] for ids, texts in found]

    def continue_ids(self, prompts):
        """Continues prompts that are ids already.

        Args:
            prompts: a list of lists of ids, none empty.

        Returns:
            For each prompt its ids and a list of (ids, whether it was ended, score).
        """
        check_prompts(prompts, self.max_new_tokens, self.decoder.max_length)
        return list(zip(prompts, self._find(prompts), strict=True))

    def _ids(self, prompts):
        """Each prompt's ids, without what frames a text."""
        before, after = Frame.of(self.tokenizer).single
        rows = unframed_ids(self.tokenizer, prompts, len(before), len(after))
        return [ids or [self.end] for ids in rows]

    def _generated(self, given, ids, ended, score):
        text = continuation(self.tokenizer, given, ids)
        return Generated(text, tuple(ids), ended, self._score(score))


def generate(
    model,
    tokenizer,
    prompts,
    search=None,
    max_new_tokens=64,
    constraints=None,
    batch_size=16,
    end_token=None,
):
    """Continues prompts, once; a `Generator` again and again, which compiles but once.

    Args:
        prompts: a list of strings.
        model, tokenizer, search, max_new_tokens, constraints, batch_size, end_token: as
            `Generator` takes them.

    Returns:
        A list of `Generated` for each prompt, the best first.

    Raises:
        InputError: as `Generator`, and as its call.
    """
    generator = Generator(
        model, tokenizer, search, constraints, max_new_tokens, batch_size, end_token
    )
    return generator(prompts)


def forbidden_ids(tokenizer, words):
    """What `Constraints` forbid so that words are not written.

    Args:
        tokenizer: from `tfnlp.text`.
        words: a list of strings.

    Returns:
        A tuple of tuples of ids: each word as it is read at the beginning of a text, and after a
        space, which may have other tokens.

    Raises:
        InputError: for a word that is empty, or that has no token.
    """
    words = as_texts(words, "words")
    before, after = Frame.of(tokenizer).single
    texts = [*words, *(f" {word}" for word in words)]
    rows = [tuple(ids) for ids in unframed_ids(tokenizer, texts, len(before), len(after))]
    for i, (word, ids) in enumerate(zip(words, rows, strict=False)):
        if not ids:
            raise InputError(
                f"words[{i}]={word!r} has no token that could be forbidden; leave it out."
            )
    return tuple(dict.fromkeys(rows))
