"""Runs exported files that write: text in, text out, by LiteRT alone."""

import threading

from distill.device.associated_files import read_files
from distill.device.decoder import CachedDecoder
from distill.device.runtime import check_kind, read_tokenizer
from distill.device.search import beam_search, greedy
from tfnlp.errors import InputError
from tfnlp.searches import Beam, Greedy
from tfnlp.text.continuations import Generated, check_prompts, continuation, unframed_ids
from tfnlp.text.texts import as_texts, check_whole


class _Writer:
    """A .tflite file that writes, its tokenizer, and a search."""

    kind = None

    def __init__(self, path, search=None, max_new_tokens=None, num_threads=1):
        check_whole(num_threads=num_threads)
        if num_threads < 1:
            raise InputError(f"num_threads={num_threads} must be at least 1.")
        settings, files = read_files(path)
        check_kind(path, settings, self.kind)
        self.path, self.search = path, search or Greedy()
        self.max_length = settings["model_max_length"]
        self.settings = settings["generation"]
        self.tokenizer = read_tokenizer(path, settings, files)
        self.end = self.settings["end_token_id"]
        longest = self.settings["max_new_tokens"]
        self.max_new_tokens = longest if max_new_tokens is None else max_new_tokens
        check_whole(max_new_tokens=self.max_new_tokens)
        self.decoder = CachedDecoder(path, num_threads)
        self._lock = threading.Lock()
        self._check_search(longest)

    def _check_search(self, longest):
        how = self.search
        if not isinstance(how, Greedy | Beam):
            raise InputError(
                f"search={how!r} is not for exported files; use Greedy() or a Beam, or generate "
                "with tfnlp.generation."
            )
        if self.max_new_tokens < 1:
            raise InputError(f"max_new_tokens={self.max_new_tokens} must be at least 1.")
        if isinstance(how, Greedy) or how.beams == 1:
            longest = self.max_length
        elif how.beams != self.decoder.beams:
            raise InputError(
                f"beams={how.beams} is not what {self.path} was exported with, beams="
                f"{self.decoder.beams}; give that, or export it again."
            )
        if self.max_new_tokens > longest:
            raise InputError(
                f"max_new_tokens={self.max_new_tokens} is more than the {longest} that "
                f"{self.path} was exported for; give fewer, or export it again."
            )

    def _search(self, logits):
        """A list of (ids, score), the best first."""
        if isinstance(self.search, Greedy):
            return greedy(self.decoder, logits, self.max_new_tokens, self.end)
        return beam_search(self.decoder, logits, self.search, self.max_new_tokens, self.end)

    def _generated(self, found, text_of):
        """What was found as `Generated`; `text_of(ids)` is their text."""
        texts = []
        for ids, score in found:
            ended = bool(ids) and ids[-1] == self.end
            ids = ids[:-1] if ended else ids
            texts.append(Generated(text_of(ids), tuple(ids), ended, score))
        return texts


class TextGenerator(_Writer):
    """Goes on from prompts, by a file of `export_generator`.

    Its tokens are those of `tfnlp.generation.Generator`. Threads may share one: their prompts are
    continued one after the other.

    Args:
        path: the file.
        search: a `Greedy`, or a `Beam` with as many beams as the file was exported with; greedy
            where None.
        max_new_tokens: the most tokens that are written; the file's where None.
        num_threads: threads of LiteRT.

    Raises:
        InputError: if the file is missing, is no .tflite, is damaged, is of another kind, or
            cannot be run; and for a search that it was not exported for.
    """

    kind = "generator"

    def __call__(self, prompts):
        """Continues prompts.

        Args:
            prompts: a list of strings; an empty one is a text from its beginning.

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
            found = self._search(self.decoder.start(prompt))
        return self._generated(found, lambda ids: continuation(self.tokenizer, prompt, ids))
