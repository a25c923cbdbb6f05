"""Model configs: sizes and rates of every family, without Keras."""

from .albert_config import AlbertConfig as AlbertConfig
from .base_config import HEADS as HEADS
from .base_config import MASKED_LMS as MASKED_LMS
from .base_config import BaseConfig as BaseConfig
from .base_config import Pooling as Pooling
from .base_config import TextConfig as TextConfig
from .base_config import check_head as check_head
from .base_config import family_name as family_name
from .bert_config import BertConfig as BertConfig
from .bert_config import RobertaConfig as RobertaConfig
from .deberta_config import DebertaConfig as DebertaConfig
from .deberta_config import DebertaV2Config as DebertaV2Config
from .distilbert_config import DistilBertConfig as DistilBertConfig
from .electra_config import ElectraConfig as ElectraConfig
from .gpt_config import Gpt2Config as Gpt2Config
from .gpt_config import GptConfig as GptConfig
from .recurrent_config import CELLS as CELLS
from .recurrent_config import RecurrentConfig as RecurrentConfig
from .recurrent_config import RecurrentTranslatorConfig as RecurrentTranslatorConfig
from .sizes import ENCODER_DECODERS as ENCODER_DECODERS
from .sizes import FAMILIES as FAMILIES
from .sizes import SIZES as SIZES
from .sizes import config_by_name as config_by_name
from .transformer_config import TransformerConfig as TransformerConfig
from .transformer_xl_config import TransformerXLConfig as TransformerXLConfig
from .xlnet_config import XLNetConfig as XLNetConfig
