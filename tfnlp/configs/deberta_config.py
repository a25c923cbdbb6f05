"""Configs of DeBERTa v1 (He et al. 2020), v2 and v3 (He et al. 2021)."""

import dataclasses
from typing import ClassVar

from tfnlp.configs.base_config import Pooling, TextConfig
from tfnlp.utils.errors import InputError


@dataclasses.dataclass(frozen=True)
class DebertaConfig(TextConfig):
    """The sizes and rates of a DeBERTa v1; defaults are those of DeBERTa-base.

    Args:
        terms: of the attention, see `DisentangledAttention`.
        max_distance: the farthest distance that attention tells apart.
        absolute_positions: whether the embeddings have positions too.
        enhanced_mask_decoder: whether masked tokens are predicted from absolute positions too,
            see `decode_masks`.
    """

    vocabulary_size: int = 50265
    num_segments: int = 0
    layer_norm_epsilon: float = 1e-7
    terms: tuple = ("c2c", "c2p", "p2c")
    max_distance: int = 512
    absolute_positions: bool = False
    enhanced_mask_decoder: bool = False

    pooling: ClassVar[Pooling] = Pooling("first", "gelu")
    packs_documents: ClassVar[bool] = True
    shares_embeddings: ClassVar[bool] = True
    discriminator_norm: ClassVar[bool] = True

    def __post_init__(self):
        super().__post_init__()
        if self.enhanced_mask_decoder and not self.tie_embeddings:
            raise InputError("enhanced_mask_decoder=True needs tie_embeddings=True.")

    @property
    def tagger_dropout(self):
        """Dropout before the tagging layer."""
        return self.dropout


@dataclasses.dataclass(frozen=True)
class DebertaV2Config(DebertaConfig):
    """The sizes and rates of a DeBERTa v2 or v3; defaults are those of DeBERTa-v3-base.

    Args:
        num_buckets: log buckets on either side of the relative positions; None for none.
        share_att_key: whether positions are projected as queries and keys are.
        normalize_positions: whether the relative table goes through a layer norm.
        convolution_size: width of the convolution beside the first block, as DeBERTa-v2-xlarge
            has it; 0 for none.
        convolution_groups: of the convolution.
        convolution_activation: likewise.
    """

    vocabulary_size: int = 128100
    num_buckets: int | None = 256
    share_att_key: bool = True
    normalize_positions: bool = True
    convolution_size: int = 0
    convolution_groups: int = 1
    convolution_activation: str = "tanh"

    @property
    def packs_documents(self):
        """True without a convolution, which would read across documents."""
        return not self.convolution_size
