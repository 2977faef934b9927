"""The older way of asking: one question, and one bare value for an answer. A question is a form of one field."""

from greenroom.protocol.questions.coerce import coerce_answer
from greenroom.protocol.questions.form import FIELD, question_schema
from greenroom.protocol.questions.record import QuestionRecord, answer_values, read_question
from greenroom.protocol.questions.shapes import Kind, Question, QuestionChoice, QuestionOptions, QuestionRules

__all__ = [
    "FIELD",
    "Kind",
    "Question",
    "QuestionChoice",
    "QuestionOptions",
    "QuestionRecord",
    "QuestionRules",
    "answer_values",
    "coerce_answer",
    "question_schema",
    "read_question",
]
