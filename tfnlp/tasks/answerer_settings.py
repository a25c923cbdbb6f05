"""Settings of question answering, without Keras."""

import dataclasses

from tfnlp.text.tokenizers.tokenizer import MAX_QUESTION_LENGTH
from tfnlp.utils.settings import Settings, setting


@dataclasses.dataclass(eq=False)
class AnswererSettings(Settings):
    """Arguments of `tfnlp.tasks.QuestionAnswering`.

    Raises:
        InputError: if a number is out of its range.
    """

    stride: int = setting(64, "Tokens that a window shares with the one before.", low=0)
    null_answers: bool = setting(
        False, "Allow questions without an answer in the text (SQuAD 2.0)."
    )
    max_question_length: int = setting(
        MAX_QUESTION_LENGTH, "Longest question in tokens; the rest is cut.", low=1
    )
