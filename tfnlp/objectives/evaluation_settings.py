"""Settings of the evaluation of a language model, without Keras."""

import dataclasses

from tfnlp.utils.settings import Settings, check_at_least, setting


@dataclasses.dataclass(frozen=True)
class LmEvaluation(Settings):
    """Settings of an evaluation, each described by the help of its field.

    Raises:
        InputError: if a number is out of its range.
    """

    max_length: int | None = setting(
        None,
        "Tokens of a window; if not given those of pretrain, or of other models the number of "
        "positions, or 128 if that is unlimited.",
        low=2,
    )
    stride: int | None = setting(
        None,
        "Tokens between the starts of windows of a causal model without memory; the others of a "
        "window are context. `max_length` if not given.",
        low=1,
    )
    memory_lengths: tuple[int, ...] | None = setting(
        None,
        "Memory lengths of a Transformer-XL to measure, such as 0,64; 0: no memory. That of its "
        "config if not given.",
    )
    batch_size: int = setting(
        8,
        "Windows or texts in a batch, or with a memory parts of the stream, each of which starts "
        "without context.",
        low=1,
    )
    masked_share: float = setting(
        0.15, "Share of masked tokens, for the accuracy of a masked LM.", low=0, high=1
    )
    pseudo_perplexity: bool = setting(
        True, "Mask each token in turn, with one pass of the model for each."
    )
    seed: int = setting(0, "Seed of the masked tokens.", low=0)

    def __post_init__(self):
        super().__post_init__()
        for length in self.memory_lengths or ():
            check_at_least(0, memory_lengths=length)
