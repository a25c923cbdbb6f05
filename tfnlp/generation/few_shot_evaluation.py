"""Few-shot evaluation: scores of a model by number of examples in the prompt."""

import pathlib

import numpy as np

from tfnlp.generation.batched_search import plain_ids
from tfnlp.generation.output_files import write_generated
from tfnlp.generation.prompts import cut_at, draw_shots, normalized
from tfnlp.tasks.reference_scores import text_scores
from tfnlp.utils.errors import InputError
from tfnlp.utils.files import read_json, write_json
from tfnlp.utils.seed_statistics import Estimate

# Scores of generated texts in the table.
WRITING_SCORES = ("bleu", "chrf", "rouge1", "rougeL")


class PromptedRun:
    """Few-shot results by number of shots and draw, saved to a file after each.

    Args:
        path: of the file; results in it are not computed again.
        settings: a dict of the settings that decide the results, except shots and draws.
        template: a `Template`.
        texts: a list of strings.
        labels: a list of strings, as written in prompts, one for each text.
        pool: (text, label) pairs to draw shots from.
        seed: of the draws.

    Raises:
        InputError: if the file has other settings; it names the first difference.
    """

    def __init__(self, path, settings, template, texts, labels, pool=(), seed=0):
        self.path, self.settings, self.template = pathlib.Path(path), settings, template
        self.texts, self.labels, self.pool, self.seed = texts, labels, pool, seed
        self.results = {}
        if self.path.exists():
            saved = read_json(self.path)
            for name, value in settings.items():
                saved_value = saved.get("settings", {}).get(name)
                if saved_value != value:
                    raise InputError(
                        f"{self.path} is of other settings: there `{name}` is {saved_value!r}, "
                        f"here {value!r}; give another `output_dir`."
                    )
            self.results = saved["results"]

    def prompts(self, shots, draw):
        """Return the prompt of each text, with the shots of a draw before it."""
        drawn = draw_shots(len(self.pool), shots, self.seed, draw)
        examples = [self.pool[i] for i in drawn]
        return [self.template.prompt(text, examples) for text in self.texts]

    def choose(self, scorer, names, shots, draws):
        """Predict the most probable label for each text, and save the accuracies.

        Args:
            scorer: a `LikelihoodScorer`.
            names: all labels, as written in prompts.
            shots: numbers of examples in a prompt.
            draws: number of draws for each number of shots.
        """
        true = np.array([names.index(label) for label in self.labels])
        completions = [self.template.completion(name) for name in names]
        endings = plain_ids(scorer.tokenizer, completions)
        check_apart(names, endings)
        context = scorer.prompt_ids([self.template.answer_context])
        priors = scorer.score_ids(context * len(names), endings)
        lengths = [len(ids) for ids in endings]

        def accuracies(number, draw):
            prompts = scorer.prompt_ids(self.prompts(number, draw))
            rows = [ids for ids in prompts for _ in endings]
            likelihoods = scorer.score_ids(rows, endings * len(prompts)).reshape(-1, len(names))
            by_name = normalized(likelihoods, lengths, priors)
            return {
                f"accuracy_{n}": float(np.mean(by_name[n].argmax(-1) == true)) for n in by_name
            }

        self._each(shots, draws, accuracies)

    def complete(self, generator, shots, draws, stop=""):
        """Generate a completion for each prompt, and save its scores.

        The texts are in files beside the results, such as written_4_0.jsonl for draw 0 of 4 shots.

        Args:
            generator: a `Generator`.
            shots, draws: as in `choose`.
            stop: string at which completions are cut, as in `cut_at`.
        """

        def scores(number, draw):
            prompts = self.prompts(number, draw)
            outputs = generator(prompts)
            path = self.path.with_name(f"written_{number}_{draw}.jsonl")
            write_generated(path, prompts, outputs)
            completions = [cut_at(texts[0].text, stop, self.template.border) for texts in outputs]
            by_name = text_scores(self.labels, completions)
            matches = [a == b for a, b in zip(self.labels, completions, strict=True)]
            return {name: by_name[name] for name in WRITING_SCORES} | {
                "exact": float(np.mean(matches))
            }

        self._each(shots, draws, scores)

    def _each(self, shots, draws, scores):
        for number in shots:
            # Without shots all draws are equal.
            for draw in range(draws if number else 1):
                key = f"{number}/{draw}"
                if key not in self.results:
                    self.results[key] = scores(number, draw)
                    write_json(self.path, {"settings": self.settings, "results": self.results})

    def table(self):
        """Return mean scores by number of shots with their standard errors, as text lines."""
        rows = {}
        for key, scores in self.results.items():
            rows.setdefault(int(key.split("/")[0]), []).append(scores)
        names = list(next(iter(self.results.values())))
        cells = [["shots", "draws", *names]]
        for number, draws in sorted(rows.items()):
            estimates = [Estimate.of(scores[name] for scores in draws) for name in names]
            cells.append([str(number), str(len(draws)), *map(_cell, estimates)])
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        return "\n".join(
            "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
            for row in cells
        )


def check_apart(names, endings):
    """Raise an InputError if two labels have the same ids, which no likelihood distinguishes."""
    seen = {}
    for name, ids in zip(names, map(tuple, endings), strict=True):
        if seen.setdefault(ids, name) != name:
            raise InputError(
                f"The labels {seen[ids]!r} and {name!r} have the same tokens, so the model cannot "
                "distinguish them; give other `label_words`."
            )


def without_texts(pool, texts):
    """Return the examples of a pool whose text is not to be labelled, to avoid leaking labels.

    Args:
        pool: (text, label) pairs.
        texts: a list of strings.
    """
    texts = {text.strip() for text in texts}
    return [pair for pair in pool if pair[0].strip() not in texts]


def label_words(names, pairs):
    """Return the word of each label in prompts.

    Args:
        names: of the labels.
        pairs: "label=word" for each, or None for the labels themselves.

    Returns:
        {label: word}.

    Raises:
        InputError: if a label has no word, a word has no label, or two labels share a word.
    """
    if not pairs:
        return {name: name for name in names}
    words = dict([part.strip() for part in pair.partition("=")][::2] for pair in pairs)
    if words.keys() != set(names) or len({*words.values()} - {""}) < len(names):
        raise InputError(
            f"label_words={','.join(pairs)} must give each of the labels {', '.join(names)} a "
            f"word of its own, such as {names[0]}=good."
        )
    return words


def _cell(estimate):
    error = "" if estimate.error is None else f" ± {estimate.error:.4f}"
    return f"{estimate.mean:.4f}{error}"
