"""Public names of the on-device runtime."""

from .associated_files import read_files as read_files
from .head_learner import HeadLearner as HeadLearner
from .litert_backend import EndingChooser as EndingChooser
from .litert_backend import LiteRtBackend as LiteRtBackend
from .litert_backend import MultiLabelClassifier as MultiLabelClassifier
from .litert_backend import QuestionAnswerer as QuestionAnswerer
from .litert_backend import SentenceScorer as SentenceScorer
from .litert_backend import StringClassifier as StringClassifier
from .litert_backend import TextClassifier as TextClassifier
from .litert_backend import TextEmbedder as TextEmbedder
from .litert_backend import TokenEmbedder as TokenEmbedder
from .litert_backend import TokenTagger as TokenTagger
from .litert_backend import load_runner as load_runner
from .text_generation import TextGenerator as TextGenerator
from .text_generation import Translator as Translator
