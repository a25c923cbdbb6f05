"""Translation by an encoder-decoder, from texts to texts."""

from tfnlp.generation.batched_search import Searcher
from tfnlp.generation.continuations import blank_texts, source_ids, translation_constraints
from tfnlp.generation.decoder_selection import decoder_of
from tfnlp.generation.generation_settings import Beam, SearchSettings
from tfnlp.models import check_vocabulary, config_of
from tfnlp.text.tokenizers.special_tokens import with_target
from tfnlp.utils.errors import InputError


class Translator(Searcher):
    """Translation of texts by an encoder-decoder.

    Padding is never generated and has no probability. Without `constraints` the end token is
    forced at the greatest length. Both follow the generation settings of Marian's models.

    Args:
        model: with the head "sequence_to_sequence".
        tokenizer: of the sources.
        target_tokenizer: of the translations; where None, the `target` of `tokenizer`
            (`MarianTokenizer`), else `tokenizer` itself.
        search: a `Greedy`, `Beam` or `Sample`; `Beam(4)` where None.
        constraints: a `Constraints`.
        max_new_tokens: the most tokens that are written, the end token counted; 128 where None, or
            as many as the model has positions.
        batch_size: sources in a batch.
        stop_strings: as in `Generator`.

    Raises:
        InputError: for a model of another family or head, a tokenizer that is not the model's or
            has no end token, and settings that contradict each other.
    """

    def __init__(
        self,
        model,
        tokenizer,
        target_tokenizer=None,
        search=None,
        constraints=None,
        max_new_tokens=None,
        batch_size=16,
        stop_strings=(),
    ):
        decoder, config = decoder_of(model, translates=True), config_of(model)
        target_tokenizer, self.source_end = with_target(
            tokenizer, target_tokenizer, config.end_token_id
        )
        check_vocabulary(tokenizer, model)
        check_vocabulary(target_tokenizer, model, decoder.vocabulary_size)
        if target_tokenizer.token(config.end_token_id) is None:
            raise InputError(
                f"The tokenizer has no token with the id {config.end_token_id}, the model's end "
                "token; give the tokenizer that belongs to the model."
            )
        if max_new_tokens is None:
            max_new_tokens = min(128, decoder.max_length or 128)
        if decoder.max_length is not None and max_new_tokens > decoder.max_length:
            raise InputError(
                f"max_new_tokens={max_new_tokens} is more than the model's {decoder.max_length} "
                "positions; give fewer."
            )
        self.tokenizer, self.target_tokenizer = tokenizer, target_tokenizer
        end, pad = config.end_token_id, config.pad_token_id
        constraints = translation_constraints(constraints, end, pad)
        search = search or Beam()
        settings = SearchSettings(
            search, constraints, max_new_tokens, (end,), pad=pad, stop_strings=stop_strings
        )
        super().__init__(decoder, settings, batch_size)

    def __call__(self, sources, too_long="error", on_token=None):
        """Return a list of `Generated` for each source, the best first.

        They have no text for a source that is blank or skipped.

        Args:
            sources, too_long: as in `continuations.source_ids`.
            on_token: as in `Generator`.

        Raises:
            InputError: if a source is not a string, or too long for the model.
        """
        rows = self.source_ids(sources, too_long=too_long)
        each = self._each(rows) if on_token is None else self._each_streamed(rows, on_token)
        translations, blank = dict(each), blank_texts(self.settings.strategy)
        return [translations.get(number, blank) for number in range(len(rows))]

    def each_translation(self, rows, first=0):
        """Yield (number of a row, list of `Generated`), in the order of completion.

        Args:
            rows: from `source_ids`.
            first: the number of the first row; samples depend on it.
        """
        for number, ids in enumerate(rows):
            if not ids:
                yield number, blank_texts(self.settings.strategy)
        yield from self._each(rows, first)

    def _text_of(self, row, ids):
        return self.target_tokenizer.decode(ids)

    def source_ids(self, sources, name="sources[{}]".format, too_long="error"):
        """Return the ids of each source, as `continuations.source_ids` does."""
        limits = self.source_end, self.decoder.max_length
        return source_ids(self.tokenizer, sources, *limits, name=name, too_long=too_long)
