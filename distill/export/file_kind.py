"""Kind of the file that a model is exported to."""

from tfnlp.pipelines.keras_backend import POOLINGS
from tfnlp.tasks.kinds import kind_of
from tfnlp.utils.errors import InputError, unknown_name


def kind_of_file(model, pooling=None):
    """Return the `Kind` of the file that a model is exported to.

    Raises:
        InputError: if the model cannot be exported, or the pooling is unknown.
    """
    if pooling not in (None, *POOLINGS):
        raise unknown_name("pooling", pooling, POOLINGS)
    if getattr(model, "text_config", None) is None:
        raise InputError(
            "export_tflite needs a model of tfnlp.models.build_model or "
            f"tfnlp.checkpoints.load_model; this {type(model).__name__} has no text_config, so "
            "build one and set its weights, or give yours to its own `export(path, 'litert')`."
        )
    kind = kind_of(model, pooling)
    surplus = sorted(set(model.input) - {"token_ids", "segment_ids", "padding_mask"})
    if surplus:
        raise InputError(
            f"{model.name} has the inputs {', '.join(surplus)} too, which a file has not; give "
            "one that reads no entities and no characters, or build it without memory=True."
        )
    return kind
