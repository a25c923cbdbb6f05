"""Hyperparameters of a training."""

import dataclasses

from tfnlp.utils.errors import InputError
from tfnlp.utils.settings import check_settings, setting

SCHEDULES = ("linear", "cosine", "inverse_sqrt", "constant")
OPTIMIZERS = ("adamw", "lamb")


@dataclasses.dataclass(frozen=True)
class TrainingConfig:
    """Hyperparameters of a training, each described by the help of its field.

    Raises:
        InputError: if a value is out of its range, or values contradict each other.
    """

    epochs: int = setting(
        3, "Passes over the training data; more than a finished run had continue it.", low=1
    )
    batch_size: int = setting(32, "Examples in a batch, over all devices.", low=1)
    learning_rate: float = setting(5e-5, "Peak learning rate.", low=0)
    warmup_share: float = setting(
        0.1, "Share of the steps in which the rate rises.", low=0, high=1
    )
    warmup_steps: int | None = setting(
        None, "Steps in which the rate rises; a share of all, a tenth, if not given.", low=0
    )
    weight_decay: float = setting(0.01, "Decay of weights; biases and norms do not decay.", low=0)
    clip_norm: float = setting(
        1.0, "Largest norm of all gradients together; 0: no clipping.", low=0
    )
    patience: int = setting(
        0, "Epochs without a better dev score after which training stops; 0: never.", low=0
    )
    checkpoint_steps: int = setting(
        500, "Steps between saved states; the state is also saved after each epoch.", low=1
    )
    seed: int = setting(0, "Seed of weights, dropout and data order.", low=0)
    schedule: str = setting(
        "linear", "Fall of the learning rate after its peak.", choices=SCHEDULES
    )
    optimizer: str = setting(
        "adamw", "AdamW, or LAMB for batches of thousands.", choices=OPTIMIZERS
    )
    beta_2: float = setting(
        0.999, "Decay of the optimizer's mean of squared gradients.", low=0, high=1, below=1
    )
    ema_decay: float = setting(
        0.0,
        "Decay, such as 0.999, of a moving average of the weights, which is evaluated and saved "
        "in their place; 0: no average.",
        low=0,
        high=1,
        below=1,
    )
    layer_decay: float = setting(
        1.0,
        "Learning rate of each block, as a share of that of the block above; ELECTRA's is 0.8.",
        low=0,
        high=1,
        above=0,
    )
    accumulation_steps: int = setting(
        1,
        "Parts in which each batch is read, for less memory; the step is that of the whole batch.",
        low=1,
    )
    gradient_checkpointing: bool = setting(
        False,
        "Compute each block a second time for its gradients: less memory, a third more time.",
    )
    fixed_length: bool = setting(
        False, "Pad all training texts to the greatest length, not to that of their batch."
    )
    xla: bool = setting(False, "Compile the training steps by XLA; needs fixed_length.")

    def __post_init__(self):
        check_settings(self)
        if self.batch_size % self.accumulation_steps:
            raise InputError(
                f"accumulation_steps={self.accumulation_steps} must divide "
                f"batch_size={self.batch_size}, the size of all parts together."
            )
        if self.xla and not self.fixed_length:
            raise InputError(
                "xla=True compiles the steps anew for each length of texts; give `fixed_length` "
                "too, which pads all to one."
            )
