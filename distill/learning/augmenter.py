"""Models that augment texts, loaded in each process that does."""

import dataclasses

from distill.learning.augmentation_settings import ContinuationConfig, ReplacementConfig
from distill.learning.text_continuation import TextContinuer
from distill.learning.word_neighbours import WordNeighbours
from distill.learning.word_replacement import WordReplacer
from tfnlp import checkpoints, pipelines, text
from tfnlp.tasks.classifier_settings import Decision


@dataclasses.dataclass(frozen=True)
class Augmenter:
    """Function without arguments that loads models; pickled, it is small.

    Args:
        model_dir: folder of a language model.
        config: a `ReplacementConfig`, of a masked one, or a `ContinuationConfig`, of a causal one.
        vectors: file of word vectors, to replace words of several tokens; None for the model's.
        teacher_dir: folder of the classifier that labels copies; None for no labels.
        labels: the teacher's, in order of their ids.
        batch_size: texts in a batch.
    """

    model_dir: str
    config: ReplacementConfig | ContinuationConfig
    vectors: str | None = None
    teacher_dir: str | None = None
    labels: list | None = None
    batch_size: int = 64

    def __call__(self):
        """Return the two functions of `augment_file`."""
        return self._load_model(), self.teacher_dir and self._load_judge()

    def _load_model(self):
        # Before the model, to report a malformed line sooner.
        vectors = self.vectors and WordNeighbours.from_file(self.vectors)
        replaces = isinstance(self.config, ReplacementConfig)
        head = "masked_lm" if replaces else "causal_lm"
        model = checkpoints.load_model(self.model_dir, head)
        tokenizer = text.load_tokenizer(self.model_dir)
        if not replaces:
            return TextContinuer(model, tokenizer, self.config, self.batch_size)
        vectors = vectors or WordNeighbours.of_model(model, tokenizer)
        return WordReplacer(model, tokenizer, vectors, self.config, self.batch_size)

    def _load_judge(self):
        teacher = pipelines.load_runner(self.teacher_dir, self.batch_size)
        teacher.labels = self.labels
        teacher.decision = Decision()  # a label for each text, however sure
        return lambda texts, pairs: [answer.label for answer in teacher.classify(texts, pairs)]
