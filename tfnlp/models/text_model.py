"""Functional model with its config and head."""

import warnings

import keras
import numpy as np

from tfnlp import configs
from tfnlp.utils.errors import InputError


@keras.saving.register_keras_serializable("tfnlp")
class TextModel(keras.Model):
    """A functional `keras.Model` with `text_config` and `head`, which copies of it keep.

    So do saving and loading, and `keras.models.clone_model`. `tfnlp.models.build_model` makes it.
    `checkpoint` is the folder, or the name on the Hub, that `load_model` read it from, or None.
    Labels, losses and metrics go by the names of outputs: `compile(loss={"logits": ...})` and
    `fit(inputs, {"logits": labels})`, the other outputs having none.
    """

    checkpoint = None

    # The arguments of a functional model and no others, so that Keras saves it as one.
    def __init__(self, inputs, outputs, name=None, **kwargs):
        super().__init__(inputs, outputs, name=name, **kwargs)
        origin = getattr(keras.tree.flatten(outputs)[0], "made_by", (None, None))
        self.text_config, self.head = origin

    @property
    def block_size(self):
        """Block size of the attention, in tokens; None for attention to all at once."""
        parts = (getattr(layer, "attention", layer) for layer in self.layers)
        return next((part.block_size for part in parts if hasattr(part, "block_size")), None)

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        """Compute the loss as Keras does, for the outputs that have labels."""
        return super().compute_loss(x, y, _with_labels(y, y_pred), sample_weight, training)

    def compute_metrics(self, x, y, y_pred, sample_weight=None):
        """Compute the metrics likewise; Keras alone would need labels for all outputs."""
        return super().compute_metrics(x, y, _with_labels(y, y_pred), sample_weight)

    def _run_through_graph(self, *args, **kwargs):
        # `keras.models.clone_model` makes the clone from these outputs alone.
        outputs = super()._run_through_graph(*args, **kwargs)
        for x in keras.tree.flatten(outputs):
            if isinstance(x, keras.KerasTensor):
                x.made_by = self.text_config, self.head
        return outputs

    def get_config(self):
        return super().get_config() | {
            "text_config": {
                "class_name": type(self.text_config).__name__,
                "config": self.text_config.get_config(),
            },
            "head": self.head,
        }

    @classmethod
    def from_config(cls, config, custom_objects=None):
        config = dict(config)
        fields, head = config.pop("text_config"), config.pop("head")
        model = super().from_config(config, custom_objects)
        kind = getattr(configs, fields["class_name"])
        model.text_config, model.head = kind.from_config(fields["config"]), head
        return model


def _with_labels(labels, outputs):
    """Return the outputs that labels name; all outputs where labels have no such names."""
    if not isinstance(labels, dict) or not labels.keys() <= outputs.keys():
        return outputs
    return {name: outputs[name] for name in labels}


def submodel(inputs, outputs, name=None):
    """Build a `keras.Model` between tensors of a model's graph, without changing the graph.

    Keras gives a model's own inputs another place in the graph where they stand beside tensors
    from within it, and then does not find them any more: to save or copy the model would fail.
    """
    places = [(x, x._keras_history) for x in keras.tree.flatten(inputs)]
    with warnings.catch_warnings():
        # A dict's keys are the model's inputs, whatever the layers that make the tensors.
        warnings.filterwarnings("ignore", "When providing `inputs` as a dict")
        part = keras.Model(inputs, outputs, name=name)
    for x, place in places:
        x._keras_history = place
    return part


def config_of(model):
    """Return the config of a model that `build_model` built.

    Raises:
        InputError: for another model.
    """
    config = getattr(model, "text_config", None)
    if config is None:
        raise InputError(
            f"Model {model.name} was not built by tfnlp.models.build_model, so its config is "
            "not known; build it so, and set its weights."
        )
    return config


def token_axes(model, output, tensor):
    """Return the axes of a model's output that run over tokens: those of no fixed size.

    Args:
        model: gives a dict.
        output: the name of the output.
        tensor: the symbolic tensor of that name, or one of its list; its first axis is of texts.

    Returns:
        A tuple of numbers; none for a chooser's logits, which are of texts to choose from.
    """
    if output == "logits" and reads_choices(model):
        return ()
    return tuple(axis for axis, size in enumerate(tensor.shape) if axis and size is None)


def reads_choices(model):
    """Return whether the inputs of a model are (B, choices, L), those of a chooser."""
    return getattr(model, "head", None) == "chooser"


def num_classes(model):
    """Return the number of classes of a model's head; None for a head without."""
    counted = model.head in configs.CLASS_HEADS
    return model.output["logits"].shape[-1] if counted else None


def start_output_bias(model, values):
    """Set the bias of a classifier's new logits, if it has one; one that is not 0 was trained."""
    bias = model.get_layer("classifier").bias
    if bias is not None and not np.asarray(bias).any():
        bias.assign(values)


def scale_logits(model, factor):
    """Multiply the logits of a classifier by a factor, by the weights of its last layer."""
    for weight in model.get_layer("classifier").weights:
        weight.assign(weight * factor)


def reads_pooled_states(path, head):
    """Return whether a weight computes, or reads, the pooled vector of a text."""
    layer = path.partition("/")[0]
    of_head = layer in ("prediction", "prediction_norm", "classifier")
    return layer == "pooler" or (of_head and head in (*configs.TEXT_CLASS_HEADS, "chooser"))


def seed_variables(model):
    """Return the variables of a model that are no weights: the seeds of its dropout."""
    weights = {id(weight) for weight in model.weights}
    return [variable for variable in model.variables if id(variable) not in weights]


def max_positions(model):
    """Return the maximum input length by a model's position tables; None if unlimited.

    Relative positions alone have none: a DeBERTa's `max_length` is of its tables, if any.
    """
    tables = (getattr(layer, "max_length", None) for layer in model.layers)
    return min((length for length in tables if length), default=None)


def check_lengths(batches, model):
    """Raise an InputError unless the model's position tables have a row for every token.

    Args:
        batches: `tfnlp.text.LengthBatches`.
        model: any `keras.Model`.
    """
    positions = max_positions(model)
    longest = max(batches.lengths, default=0)
    if positions is not None and longest > positions:
        raise InputError(
            f"The longest text has {longest} tokens, but the model only {positions} positions; "
            f"cut the texts to max_length={positions}."
        )


def check_vocabulary(tokenizer, model, rows=None):
    """Raise an InputError unless the vocabulary fits the model's table of embeddings.

    Args:
        tokenizer: from `tfnlp.text`.
        model: from `build_model`.
        rows: of the table; the config's `vocabulary_size` if None.
    """
    rows = rows or config_of(model).vocabulary_size
    # Some tables are rounded up: DeBERTa v3 has 128,100 rows for 128,001 tokens.
    spare = min(128, rows // 100)
    if not rows - spare <= tokenizer.vocabulary_size <= rows:
        raise InputError(
            f"The vocabulary has {tokenizer.vocabulary_size} tokens, but the model's table "
            f"{rows}; give the tokenizer that belongs to the model."
        )
