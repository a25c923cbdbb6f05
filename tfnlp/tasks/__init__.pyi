"""Fine-tuning tasks: each encodes its examples and defines a loss and scores (see `Task`)."""

from .class_weights import class_weights as class_weights
from .classification import Classification as Classification
from .features import extract_features as extract_features
from .features_file import check_features_file as check_features_file
from .features_file import write_features as write_features
from .multi_label import MultiLabelClassification as MultiLabelClassification
from .multiple_choice import MultipleChoice as MultipleChoice
from .multiple_choice import read_choices as read_choices
from .parallel_texts import ParallelTexts as ParallelTexts
from .parallel_texts import read_parallel_texts as read_parallel_texts
from .question_answering import QuestionAnswering as QuestionAnswering
from .question_answering import read_questions as read_questions
from .reference_scores import make_bleu as make_bleu
from .reference_scores import scoring_libraries as scoring_libraries
from .reference_scores import text_scores as text_scores
from .regression import Regression as Regression
from .regression import read_scored_pairs as read_scored_pairs
from .tagging import Tagging as Tagging
from .tagging import read_tagged as read_tagged
from .tagging import tag_names as tag_names
from .task import Task as Task
from .translation import Translation as Translation
from .translation_batches import ScheduledSampling as ScheduledSampling
