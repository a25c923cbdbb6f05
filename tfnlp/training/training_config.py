"""Hyperparameters of a training."""

import dataclasses

from tfnlp.utils.errors import InputError, unknown_name

SCHEDULES = ("linear", "cosine", "inverse_sqrt", "constant")
OPTIMIZERS = ("adamw", "lamb")


@dataclasses.dataclass(frozen=True)
class TrainingConfig:
    """Hyperparameters of a training.

    Args:
        epochs: passes over the training data.
        batch_size: B, over all devices together.
        learning_rate: the peak.
        warmup_share: share of all steps in which the rate rises.
        warmup_steps: number of warm-up steps, which overrides the share; None for the share.
        weight_decay: lambda of the optimizer.
        clip_norm: the largest global gradient norm; 0 for no clipping.
        patience: epochs without a better dev metric before stopping; 0 for no early stopping.
        checkpoint_steps: steps between saved states; the state is also saved after each epoch.
        seed: of weights, dropout and data order.
        schedule: learning rate schedule after the warm-up, one of `SCHEDULES`.
        optimizer: "adamw" or "lamb".
        beta_2: decay of the optimizer's mean of squared gradients.
        ema_decay: decay of the moving average of the weights, which is then evaluated and saved; 0
            for none.
        layer_decay: factor of the rate from each block to the one below (`layer_factors`).
        accumulation_steps: sequential parts of each batch; the step is that of the whole batch.
        fixed_length: whether all training texts are padded to the maximum length.
        gradient_checkpointing: whether activations of blocks are recomputed for the gradients
            instead of kept (`recompute_blocks`).
        xla: whether XLA compiles the training steps, which requires texts of one length.

    Raises:
        InputError: if a value is out of its range, or values contradict each other.
    """

    epochs: int = 3
    batch_size: int = 32
    learning_rate: float = 5e-5
    warmup_share: float = 0.1
    warmup_steps: int | None = None
    weight_decay: float = 0.01
    clip_norm: float = 1.0
    patience: int = 0
    checkpoint_steps: int = 500
    seed: int = 0
    schedule: str = "linear"
    optimizer: str = "adamw"
    beta_2: float = 0.999
    ema_decay: float = 0.0
    layer_decay: float = 1.0
    accumulation_steps: int = 1
    gradient_checkpointing: bool = False
    fixed_length: bool = False
    xla: bool = False

    def __post_init__(self):
        for name, known in (("schedule", SCHEDULES), ("optimizer", OPTIMIZERS)):
            if getattr(self, name) not in known:
                raise unknown_name(name, getattr(self, name), known)
        if not 0 <= self.ema_decay < 1:
            raise InputError(
                f"ema_decay={self.ema_decay} must be at least 0, for no average, and below 1, at "
                "which the first weights would stay."
            )
        if not 0 <= self.beta_2 < 1:
            raise InputError(f"beta_2={self.beta_2} must be at least 0, and below 1.")
        if self.warmup_steps is not None and self.warmup_steps < 0:
            raise InputError(f"warmup_steps={self.warmup_steps} must be at least 0.")
        if not 0 < self.layer_decay <= 1:
            raise InputError(f"layer_decay={self.layer_decay} must be above 0, and at most 1.")
        if self.accumulation_steps < 1 or self.batch_size % self.accumulation_steps:
            raise InputError(
                f"accumulation_steps={self.accumulation_steps} must divide "
                f"batch_size={self.batch_size}, which is that of all parts together."
            )
        if self.xla and not self.fixed_length:
            raise InputError(
                "xla=True compiles the steps anew for each length of texts; give `fixed_length` "
                "too, which pads all to one."
            )
