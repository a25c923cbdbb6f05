"""Zero-, one- and few-shot prompts, and scores of a model by number of examples in the prompt.

Brown et al. 2020, 'Language Models are Few-Shot Learners', sections 2 and 2.4.
"""

import dataclasses
import pathlib
import re

import numpy as np

from tfnlp.generation.generation_settings import Shots
from tfnlp.generation.output_files import write_generated
from tfnlp.tasks.reference_scores import text_scores
from tfnlp.text.tokenizers.special_tokens import plain_ids
from tfnlp.utils.errors import InputError
from tfnlp.utils.files import read_json, write_json
from tfnlp.utils.formatting import aligned
from tfnlp.utils.seed_statistics import Estimate
from tfnlp.utils.settings import check_whole

# Scores of generated texts in the table.
WRITING_SCORES = ("bleu", "chrf", "rouge1", "rougeL")


@dataclasses.dataclass(frozen=True)
class Template:
    """Prompt template of an example.

    Args:
        pattern: with the slots {text} and, after it, {label}, such as
            "Review: {text}\\nSentiment: {label}".
        separator: the string between examples.
        instruction: the task description before the first example; none where empty.

    Raises:
        InputError: if a slot is missing, repeated or out of order, or nothing separates the two,
            so that text and label would run together.
    """

    pattern: str
    separator: str = "\n\n"
    instruction: str = ""

    def __post_init__(self):
        counts = {self.pattern.count(slot) for slot in ("{text}", "{label}")}
        if counts != {1} or not re.search(r"\{text\}.+\{label\}", self.pattern, re.DOTALL):
            raise InputError(
                f"template={self.pattern!r} must have {{text}} once and then, after a space, line "
                "break or words, {label} once, as in 'Review: {text} Sentiment: {label}'."
            )

    @property
    def _parts(self):
        """Strings before the text, between text and label, and after the label."""
        return re.split(r"\{text\}|\{label\}", self.pattern)

    @property
    def answer_context(self):
        """String before a label regardless of the text: Brown et al.'s "Answer:"."""
        return self._parts[1].strip()

    @property
    def border(self):
        """White space before a label."""
        between = self._parts[1]
        return between[len(between.rstrip()) :]

    def example(self, text, label):
        """Return an example with its label."""
        before, between, after = self._parts
        return f"{before}{text}{between}{label}{after}"

    def prompt(self, text, shots=()):
        """Return the prompt before the label of a text, after `shots`, (text, label) pairs.

        It has no trailing white space, which belongs to the label; see `completion`.
        """
        before, between, _ = self._parts
        parts = [self.instruction] * bool(self.instruction)
        parts += [self.example(*shot) for shot in shots]
        return self.separator.join([*parts, f"{before}{text}{between}"]).rstrip()

    def completion(self, label):
        """Return a label as the continuation of a prompt, with the white space before it."""
        return self.border + label


def draw_shots(examples, shots, seed, draw):
    """Return the indices of `shots` random examples of a number, without replacement.

    The draw depends on `seed` and `draw` alone.

    Raises:
        InputError: if there are more shots than examples, or fewer than 0.
    """
    check_whole(shots=shots)
    if not 0 <= shots <= examples:
        raise InputError(
            f"shots={shots} must lie between 0 and {examples}, the number of examples."
        )
    rng = np.random.default_rng([seed, draw])
    return rng.choice(examples, shots, replace=False).tolist()


def normalized(likelihoods, lengths, priors):
    """Return normalised log-likelihoods of completions.

    Args:
        likelihoods: (B, C), each label's after each prompt, summed over tokens.
        lengths, priors: (C,), each label's tokens, and its log-likelihood after the answer context
            alone.

    Returns:
        {name: (B, C)}: "sum", the sums; "length", the sums divided by the number of tokens; and
        "prior", the sums minus the prior, which is the log of P(completion | context) /
        P(completion | answer context).
    """
    return {
        "sum": likelihoods,
        "length": likelihoods / np.asarray(lengths),
        "prior": likelihoods - np.asarray(priors),
    }


def cut_at(text, stop, border=""):
    """Return a completion up to the string `stop`, if it is not empty, without white space around.

    In `border`, the white space at the beginning of a label (`Template.border`), `stop` is
    ignored. An answer that ends right after it is empty.
    """
    text = text.removeprefix(border)
    return (text.split(stop)[0] if stop else text).strip()


class PromptedRun:
    """Few-shot results by number of shots and draw, saved to a file after each.

    Args:
        path: of the file; results in it are not computed again.
        settings: a dict of the settings that decide the results, except shots and draws.
        template: a `Template`.
        texts: a list of strings.
        labels: a list of strings, as written in prompts, one for each text.
        pool: (text, label) pairs to draw shots from.
        shots: `Shots`; those of the defaults where None.

    Raises:
        InputError: if the file has other settings; it names the first difference.
    """

    def __init__(self, path, settings, template, texts, labels, pool=(), shots=None):
        self.path, self.settings, self.template = pathlib.Path(path), settings, template
        self.texts, self.labels, self.pool, self.shots = texts, labels, pool, shots or Shots()
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
        drawn = draw_shots(len(self.pool), shots, self.shots.seed, draw)
        examples = [self.pool[i] for i in drawn]
        return [self.template.prompt(text, examples) for text in self.texts]

    def choose(self, scorer, names):
        """Predict the most probable label for each text, and save the accuracies.

        Args:
            scorer: a `LikelihoodScorer`.
            names: all labels, as written in prompts.
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
            by_name = normalized(likelihoods, lengths, priors).items()
            return {f"accuracy_{n}": float(np.mean(x.argmax(-1) == true)) for n, x in by_name}

        self._each(accuracies)

    def complete(self, generator, stop=""):
        """Generate a completion for each prompt, and save its scores.

        The texts are in files beside the results, such as written_4_0.jsonl for draw 0 of 4 shots.

        Args:
            generator: a `Generator`.
            stop: string at which completions are cut, as in `cut_at`.
        """

        def scores(number, draw):
            prompts = self.prompts(number, draw)
            outputs = generator(prompts)
            path = self.path.with_name(f"written_{number}_{draw}.jsonl")
            write_generated(path, prompts, outputs)
            completions = [cut_at(texts[0].text, stop, self.template.border) for texts in outputs]
            by_name = text_scores(self.labels, completions)
            exact = np.mean([a == b for a, b in zip(self.labels, completions, strict=True)])
            return {name: by_name[name] for name in WRITING_SCORES} | {"exact": float(exact)}

        self._each(scores)

    def _each(self, scores):
        for number in sorted(set(self.shots.shots)):
            # Without shots all draws are equal.
            for draw in range(self.shots.draws if number else 1):
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
            cells.append([str(number), str(len(draws))])
            for name in names:
                estimate = Estimate.of(scores[name] for scores in draws)
                error = "" if estimate.error is None else f" ± {estimate.error:.4f}"
                cells[-1].append(f"{estimate.mean:.4f}{error}")
        return "\n".join(aligned(cells, str.rjust))


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
    """Return the (text, label) pairs of a pool whose text is none of those to be labelled."""
    texts = {text.strip() for text in texts}
    return [pair for pair in pool if pair[0].strip() not in texts]


def label_words(names, pairs):
    """Return the word of each label in prompts, {label: word}.

    Args:
        names: of the labels.
        pairs: "label=word" for each, or None for the labels themselves.

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
