"""Training of a student on its teacher's outputs."""

from distill.learning.distances import (
    attention_error,
    cosine_error,
    relation_error,
    score_error,
    squared_error,
    text_state_error,
)
from distill.learning.distillation import Distillation, distill
from distill.learning.distiller import Distiller
from distill.learning.general_distillation import (
    check_cacheable,
    distill_general,
    load_general_teacher,
    what_is_predicted,
)
from distill.learning.layer_map import check_layer_map, even_layer_map, resolve_layer_map
from distill.learning.methods import (
    METHODS,
    attention_score_terms,
    hidden_state_terms,
    make_projection,
    make_terms,
    soft_label_terms,
)
from distill.learning.student import make_student
from distill.learning.teacher import load_teacher, read_teacher_labels, read_teachers_tokenizer
from distill.learning.terms import Term, TermsLoss

__all__ = [
    "METHODS",
    "Distillation",
    "Distiller",
    "Term",
    "TermsLoss",
    "attention_error",
    "attention_score_terms",
    "check_cacheable",
    "check_layer_map",
    "cosine_error",
    "distill",
    "distill_general",
    "even_layer_map",
    "hidden_state_terms",
    "load_general_teacher",
    "load_teacher",
    "make_projection",
    "make_student",
    "make_terms",
    "read_teacher_labels",
    "read_teachers_tokenizer",
    "relation_error",
    "resolve_layer_map",
    "score_error",
    "soft_label_terms",
    "squared_error",
    "text_state_error",
    "what_is_predicted",
]
