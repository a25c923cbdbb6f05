"""Public names of the on-device runtime, which `distill.runtime.litert_runners` describes."""

from .associated_files import read_files as read_files
from .litert_runners import CLASSES as CLASSES
from .litert_runners import EndingChooser as EndingChooser
from .litert_runners import QuestionAnswerer as QuestionAnswerer
from .litert_runners import SentenceScorer as SentenceScorer
from .litert_runners import TextClassifier as TextClassifier
from .litert_runners import TextEmbedder as TextEmbedder
from .litert_runners import TextRunner as TextRunner
from .litert_runners import TokenTagger as TokenTagger
from .litert_runners import load_runner as load_runner
from .text_generation import TextGenerator as TextGenerator
from .text_generation import Translator as Translator
