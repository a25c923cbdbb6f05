"""Shapes and Keras masks of a content and a query stream (XLNet)."""

from tfnlp.functional.masks import set_mask
from tfnlp.layers.core.base_layer import check_states


def query_stream_mask_of(content_mask, query_mask, target_mapping):
    """Return the query stream's Keras mask: its own, or the content's at the same positions.

    With a `target_mapping` it has other positions than the content.
    """
    return content_mask if query_mask is None and target_mapping is None else query_mask


def pair_streams(content, query, query_mask, return_attention_scores):
    """Return the outputs of both streams, the query's with its mask, and any scores."""
    if not return_attention_scores:
        return content, set_mask(query, query_mask)
    streams, scores = zip(content, query, strict=True)
    return (streams[0], set_mask(streams[1], query_mask)), scores


def check_streams(content_stream, query_stream, target_mapping):
    """Raise a ValueError unless the streams and the mapping between them fit."""
    content = tuple(content_stream.shape)
    check_states(content_stream=content, query_stream=getattr(query_stream, "shape", None))
    if query_stream is None:
        if target_mapping is not None:
            raise ValueError("target_mapping is given, but there is no query_stream.")
        return
    query = tuple(query_stream.shape)
    if query[-1] != content[-1]:
        raise ValueError(
            f"query_stream has shape {query}, but its width must be that of content_stream, "
            f"{content[-1]}."
        )
    due = content[1]
    if target_mapping is not None:
        shape = tuple(target_mapping.shape)
        for axis, length in ((1, query[1]), (2, content[1])):
            if len(shape) != 3 or (None not in (shape[axis], length) and shape[axis] != length):
                raise ValueError(
                    f"target_mapping has shape {shape}, but must be (batch, predictions, "
                    f"positions), here ({content[0]}, {query[1]}, {content[1]})."
                )
        due = None
    if None not in (due, query[1]) and query[1] != due:
        raise ValueError(
            f"query_stream has shape {query}, but without target_mapping its length must be "
            f"that of content_stream, {due}."
        )
