"""Runners of exported generation files with LiteRT alone: text in, text out."""

import threading

import numpy as np

from distill.runtime.associated_files import (
    TARGET_TOKENIZER_FILE,
    TOKENIZER_FILE,
    check_kind,
    read_files,
)
from distill.runtime.cached_decoder import CachedDecoder
from distill.runtime.litert_backend import read_tokenizer
from distill.runtime.numpy_search import beam_search, greedy
from tfnlp.generation.continuations import (
    Generated,
    blank_texts,
    check_prompts,
    continuation,
)
from tfnlp.generation.generation_settings import Beam, Greedy
from tfnlp.tasks.kinds import GENERATOR, TRANSLATOR
from tfnlp.text.reading.text_arguments import as_texts
from tfnlp.text.tokenizers.special_tokens import unframed_ids
from tfnlp.utils.errors import InputError
from tfnlp.utils.settings import check_at_least


class _GenerationFile:
    """Exported generation file, with its tokenizer and a search."""

    kind = None
    forces_end = False  # whether the end token is forced at the maximum length

    def __init__(self, path, search=None, max_new_tokens=None, num_threads=1):
        check_at_least(1, num_threads=num_threads)
        settings, files = read_files(path)
        check_kind(path, settings, self.kind)
        self.path = path
        self.max_length = settings["model_max_length"]
        self.settings = settings["generation"]
        self.tokenizer = read_tokenizer(path, settings, files)
        self.end = self.settings["end_token_id"]
        target = files.get(TARGET_TOKENIZER_FILE)
        self.target_tokenizer = getattr(self.tokenizer, "target", self.tokenizer)
        if target is not None:
            self.target_tokenizer = read_tokenizer(path, settings, {TOKENIZER_FILE: target})
        self.decoder = CachedDecoder(path, num_threads)
        self.search = self._default_search() if search is None else search
        self.max_new_tokens = self._new_tokens(max_new_tokens)
        self._lock = threading.Lock()

    def _default_search(self):
        return Greedy()

    def _new_tokens(self, max_new_tokens):
        """Return the most tokens to generate.

        Raises:
            InputError: if the file was exported for fewer, or for another search.
        """
        beams = 1 if isinstance(self.search, Greedy) else getattr(self.search, "beams", None)
        if beams not in (1, self.decoder.beams):
            raise InputError(
                f"search={self.search!r} is not what {self.path} was exported for; give Greedy() "
                f"or a Beam with beams={self.decoder.beams}, or export it again."
            )
        longest = self.settings["max_new_tokens"]
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

    def _search(self, logits, rules=None):
        """Return a list of (ids, score), the best first."""
        steps = self.max_new_tokens
        if isinstance(self.search, Greedy):
            return greedy(self.decoder, logits, steps, self.end, rules)
        return beam_search(self.decoder, logits, self.search, steps, self.end, rules=rules)

    def _generated(self, results, text_of):
        """Return search results as `Generated`; `text_of(ids)` decodes them."""
        texts = []
        for ids, score in results:
            ends = bool(ids) and ids[-1] == self.end
            forced = self.forces_end and len(ids) == self.max_new_tokens
            ids = ids[:-1] if ends else ids
            texts.append(Generated(text_of(ids), tuple(ids), ends and not forced, score))
        return texts


class TextGenerator(_GenerationFile):
    """Text generation from prompts, with a file of `export_generator`.

    Its tokens are those of `tfnlp.generation.Generator`. Threads may share an instance: their
    prompts are continued one after the other.

    Args:
        path: the file.
        search: a `Greedy`, or a `Beam` with as many beams as the file was exported with; greedy
            where None.
        max_new_tokens: the most tokens to generate; the file's where None.
        num_threads: threads of LiteRT.

    Raises:
        InputError: if the file is missing, is no .tflite, is damaged, is of another kind, cannot
            be run, or was not exported for the search.
    """

    kind = GENERATOR

    def __call__(self, prompts):
        """Generate continuations of prompts.

        Args:
            prompts: a list of strings; an empty one generates from the beginning of a text.

        Returns:
            A list of `Generated` for each prompt, the best first.

        Raises:
            InputError: if a prompt is not a string, or too long for the file.
        """
        prompts = as_texts(prompts, "prompts")
        rows = unframed_ids(self.tokenizer, prompts, *self.settings["framed"])
        rows = [ids or [self.end] for ids in rows]
        check_prompts(rows, self.max_new_tokens, self.max_length)
        return [self._continue(ids) for ids in rows]

    def _continue(self, prompt):
        with self._lock:
            results = self._search(self.decoder.start(prompt))
        return self._generated(results, lambda ids: continuation(self.tokenizer, prompt, ids))


class Translator(_GenerationFile):
    """Translation of texts, with a file of `export_translator`.

    Its tokens are those of `tfnlp.generation.Translator`. Arguments, threads and errors are as
    with `TextGenerator`, but that without a `search` it is the file's beam, or greedy for 1, and
    that `max_new_tokens` include the end token.
    """

    kind = TRANSLATOR
    forces_end = True

    def _default_search(self):
        return Beam(self.decoder.beams) if self.decoder.beams > 1 else Greedy()

    def __call__(self, sources):
        """Translate a list of strings.

        Returns:
            A list of `Generated` for each source, the best first; a blank source has an empty
            text.

        Raises:
            InputError: if a source is not a string, or too long for the file.
        """
        sources = as_texts(sources, "sources")
        rows = unframed_ids(self.tokenizer, sources, *self.settings["framed"])
        rows = [[*ids, self.settings["source_end_token_id"]] for ids in rows]
        for number, ids in enumerate(rows):
            if len(ids) > self.max_length:
                raise InputError(
                    f"sources[{number}] has {len(ids)} tokens, more than the {self.max_length} "
                    f"that {self.path} reads; shorten it, or export it with longer fixed_lengths."
                )
        return [
            self._translate(ids) if source.strip() else blank_texts(self.search)
            for ids, source in zip(rows, sources, strict=True)
        ]

    def _translate(self, source):
        with self._lock:
            logits = self.decoder.start_from(source, self.settings["start_token_id"])
            results = self._search(logits, self._rules)
        return self._generated(results, self.target_tokenizer.decode)

    def _rules(self, scores, number):
        """Mask padding in scores (K, V) of token `number`; force the end token at the last."""
        scores = scores.copy()
        pad = self.settings["pad_token_id"]
        if pad != self.end:
            scores[:, pad] = -np.inf
        if number == self.max_new_tokens - 1:
            scores[:] = -np.inf
            scores[:, self.end] = 0
        return scores
