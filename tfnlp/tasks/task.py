"""Base class of fine-tuning tasks."""

import abc
import collections

from tfnlp import baselines, functional
from tfnlp.utils.errors import InputError


class Task(abc.ABC):
    """A fine-tuning task: how examples are encoded, and how outputs are scored.

    Attributes:
        kind: the `tfnlp.tasks.kinds.Kind` of its models: their head and outputs, and the link
            from these to answers.
        num_classes: the number of classes of the head; None where the head has no classes.
        label_names: the names of the classes; None where there are none.
        settings: a dict of how texts are read, which is stored in the model's folder; or None.
        tuned_settings: the names of those that `tune` chooses on dev.
        scores: the names of the metrics of `score`.
        monitor: the one that selects the best epoch, or "loss"; the larger the better, or of a
            loss or error the smaller.
        compares_examples: whether its loss is of all examples of a batch together, not their mean.
        labelled: whether its training examples have labels, or texts to compare with each other.
        calibrated: whether its `calibrate` changes the trained model's head by dev.
        linear: whether linear classifiers of bags of words are reported beside a model's scores.
    """

    kind = None
    num_classes = None
    label_names = None
    settings = None
    tuned_settings = ()
    scores = ("accuracy",)
    monitor = "accuracy"
    compares_examples = False
    labelled = True
    calibrated = False
    linear = False

    def select_by(self, monitor):
        """Select the best epoch by another metric than the task's.

        Raises:
            InputError: if it is neither a score of the task nor "loss".
        """
        names = (*self.scores, "loss")
        if monitor not in names:
            raise InputError(
                f"monitor={monitor} is no score of this training; use one of {', '.join(names)}."
            )
        self.monitor = monitor

    def decisive(self):
        """Return {name: value} of the settings that decide a run's result; not of defaults."""
        return {}

    def initialise_head(self, model, examples):  # noqa: B027
        """Initialise a new model's head from the training examples; by default, do nothing."""

    def batch_model(self, model):
        """Return the model that reads batches of `encode`; by default, the model itself."""
        return model

    @abc.abstractmethod
    def encode(self, tokenizer, examples, max_length):
        """Encode examples.

        Returns:
            The encodings, as `LengthBatches` takes them, and the labels; None without labels.
        """

    def loss(self, labels, outputs, sample_weight=None):
        """Return the loss of a batch, a mean as in `tfnlp.functional.weighted_losses`."""
        return functional.weighted_losses.cross_entropy(labels, outputs["logits"], sample_weight)

    @abc.abstractmethod
    def decode(self, examples, encodings, outputs):
        """Return the prediction for each example.

        Args:
            examples: the examples, with or without labels.
            encodings: the result of `encode`.
            outputs: {name: the output of each encoding, a list}, for the names in `kind.reads`.
        """

    def calibrate(self, model, examples, outputs):
        """Change a trained model's head by its outputs on dev; by default, change nothing.

        Returns:
            The outputs of the changed model, and a dict of figures.
        """
        return outputs, {}

    def tune(self, examples, outputs):  # noqa: B027
        """Choose on dev what `decode` needs beside the outputs, such as thresholds."""

    def score(self, examples, encodings, outputs):
        """Return a dict of metrics, from the arguments of `decode`."""
        predictions = self.decode(examples, encodings, outputs)
        return self.score_predictions(examples, predictions) | self.score_outputs(
            examples, outputs
        )

    def score_outputs(self, examples, outputs):
        """Return a dict of further metrics, which need more than predictions; none by default."""
        return {}

    def log_likelihood(self, examples, outputs):  # noqa: B027
        """Return the log-probability of each example's labels, (examples,); None by default."""

    @abc.abstractmethod
    def score_predictions(self, examples, predictions):
        """Return a dict of metrics, from the result of `decode`."""

    def answers(self, examples, predictions):
        """Return the correct and the predicted labels, one a text or word, as two lists.

        Both are empty for a task whose predictions are not labels or numbers.
        """
        return [], []

    def label_counts(self, examples):
        """Return {label or number: how many examples or words have it}; empty without labels."""
        return collections.Counter(self.answers(examples, [])[0]) if self.label_names else {}

    def baseline(self, examples):
        """Return the metrics of one constant prediction: the commonest label, or the mean number.

        The dict is empty for a task without one.
        """
        return {}

    def linear_figures(self, splits):
        """Return {name: figure} of linear classifiers on {name: examples}; {} unless `linear`."""
        return baselines.linear_figures(self, splits) if self.linear else {}
