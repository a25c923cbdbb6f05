"""Runners of exported generation files with LiteRT alone: text in, text out."""

import functools
import threading

from distill.runtime.associated_files import (
    TARGET_TOKENIZER_FILE,
    TOKENIZER_FILE,
    check_kind,
    read_files,
)
from distill.runtime.cached_decoder import CachedDecoder
from distill.runtime.litert_backend import read_tokenizer
from tfnlp.generation.continuations import (
    blank_texts,
    check_prompts,
    continuation,
    source_ids,
    translation_constraints,
)
from tfnlp.generation.generation_settings import Beam, Constraints, Greedy, SearchSettings
from tfnlp.generation.numpy_search import TextSearch
from tfnlp.tasks.kinds import GENERATOR, TRANSLATOR
from tfnlp.text.reading.text_arguments import as_texts
from tfnlp.text.tokenizers.special_tokens import plain_ids
from tfnlp.utils.errors import InputError
from tfnlp.utils.settings import check_at_least


class _GenerationFile:
    """Exported generation file, with its tokenizer and a search."""

    kind = None

    def __init__(
        self,
        path,
        search=None,
        max_new_tokens=None,
        num_threads=1,
        constraints=None,
        stop_strings=(),
    ):
        check_at_least(1, num_threads=num_threads)
        settings, files = read_files(path)
        check_kind(path, settings, self.kind)
        self.path = path
        self.max_length = settings["model_max_length"]
        self._generation = settings["generation"]
        self.tokenizer, self.target_tokenizer = read_tokenizers(path, settings, files)
        self.decoder = CachedDecoder(path, num_threads)
        search = self._default_search() if search is None else search
        ends = self._generation["end_token_id"]  # one id, or several
        ends = tuple(ends) if isinstance(ends, list) else (ends,)
        pad = self._generation.get("pad_token_id", ends[0])
        constraints = self._constraints(constraints, ends[0], pad)
        steps = self._new_tokens(search, max_new_tokens)
        self.settings = SearchSettings(
            search, constraints, steps, ends, pad=pad, stop_strings=stop_strings
        )
        self.settings.check(self.decoder.vocabulary_size)
        self._write = TextSearch(self.decoder, self.settings)
        self._lock = threading.Lock()

    def _default_search(self):
        return Greedy()

    def _constraints(self, constraints, end, pad):
        return Constraints() if constraints is None else constraints

    def _new_tokens(self, search, max_new_tokens):
        """Return the most tokens to generate.

        Raises:
            InputError: if the file was exported for fewer, or for another search.
        """
        beams = search.beams if isinstance(search, Beam) else 1
        if beams not in (1, self.decoder.beams):
            raise InputError(
                f"search={search!r} is not what {self.path} was exported for; give Greedy(), a "
                f"Sample or a Beam with beams={self.decoder.beams}, or export it again."
            )
        longest = self._generation["max_new_tokens"]
        max_new_tokens = longest if max_new_tokens is None else max_new_tokens
        check_at_least(1, max_new_tokens=max_new_tokens)
        if beams == 1 and self.kind == GENERATOR:
            longest = self.max_length
        if max_new_tokens > longest:
            raise InputError(
                f"max_new_tokens={max_new_tokens} is more than the {longest} that {self.path} was "
                "exported for; give fewer, or export it again."
            )
        return max_new_tokens


def read_tokenizers(path, settings, files):
    """Return the tokenizer of a file's prompts or sources, and that of the texts it writes.

    Args:
        path: the file.
        settings, files: from `read_files`.
    """
    tokenizer, target = read_tokenizer(path, settings, files), files.get(TARGET_TOKENIZER_FILE)
    if target is not None:
        return tokenizer, read_tokenizer(path, settings, {TOKENIZER_FILE: target})
    return tokenizer, getattr(tokenizer, "target", tokenizer)


class TextGenerator(_GenerationFile):
    """Text generation from prompts, with a file of `export_generator`.

    Its tokens are those of `tfnlp.generation.Generator`. Threads may share an instance: their
    prompts are continued one after the other.

    Args:
        path: the file.
        search: a `Greedy`, a `Sample`, or a `Beam` with as many beams as the file was exported
            with; greedy where None.
        max_new_tokens: the most tokens to generate; the file's where None.
        num_threads: threads of LiteRT.
        constraints: a `Constraints`; none where None.
        stop_strings: strings that end a text, which is cut before them.

    Raises:
        InputError: if the file is missing, is no .tflite, is damaged, is of another kind, cannot
            be run, or was not exported for the search, and for settings that contradict each
            other.
    """

    kind = GENERATOR

    def __call__(self, prompts, on_token=None):
        """Generate continuations of prompts.

        Args:
            prompts: a list of strings; an empty one generates from the beginning of a text.
            on_token: as in `tfnlp.generation.Generator`.

        Returns:
            A list of `Generated` for each prompt, the best first.

        Raises:
            InputError: if a prompt is not a string, or too long for the file.
        """
        prompts = as_texts(prompts, "prompts")
        rows = [ids or [self.settings.ends[0]] for ids in plain_ids(self.tokenizer, prompts)]
        check_prompts(rows, self.settings.steps, self.max_length)
        return [self._continue(*numbered, on_token) for numbered in enumerate(rows)]

    def _continue(self, number, prompt, on_token):
        start = functools.partial(self.decoder.start, prompt)
        text_of = functools.partial(continuation, self.tokenizer, prompt)
        with self._lock:
            return self._write(start, prompt, text_of, number, on_token)


class Translator(_GenerationFile):
    """Translation of texts, with a file of `export_translator`.

    Its tokens are those of `tfnlp.generation.Translator`. Arguments, threads and errors are as
    with `TextGenerator`, but that without a `search` it is the file's beam, or greedy for 1, that
    `max_new_tokens` include the end token, and that without `constraints` it is forced at last.
    """

    kind = TRANSLATOR

    def _default_search(self):
        return Beam(self.decoder.beams) if self.decoder.beams > 1 else Greedy()

    def _constraints(self, constraints, end, pad):
        return translation_constraints(constraints, end, pad)

    def __call__(self, sources, too_long="error", on_token=None):
        """Translate a list of strings.

        Args:
            sources, too_long, on_token: as in `tfnlp.generation.Translator`.

        Returns:
            A list of `Generated` for each source, the best first; a source that is blank or
            skipped has an empty text.

        Raises:
            InputError: if a source is not a string, or too long for the file.
        """
        rows = self.source_ids(sources, too_long=too_long)
        return [self._translate(number, ids, on_token) for number, ids in enumerate(rows)]

    def source_ids(self, sources, name="sources[{}]".format, too_long="error"):
        """Return the ids of each source, as `continuations.source_ids` does."""
        limits = self._generation["source_end_token_id"], self.max_length
        return source_ids(self.tokenizer, sources, *limits, name=name, too_long=too_long)

    def each_translation(self, rows, first=0):
        """Yield (number of a row, list of `Generated`), as `tfnlp.generation.Translator` does."""
        for number, ids in enumerate(rows):
            yield number, self._translate(first + number, ids)

    def _translate(self, number, source, on_token=None):
        if not source:
            return blank_texts(self.settings.strategy)
        first = self._generation["start_token_id"]
        start = functools.partial(self.decoder.start_from, source, first)
        with self._lock:
            return self._write(start, [first], self.target_tokenizer.decode, number, on_token)
