from benchmarks.film_sentences import most_disputed


def test_sentences_of_the_largest_differences_are_chosen():
    """By the probability of label 1: 0.9 and 0.2, 0.6 and 0.55, 0.3 and 0.8."""
    teacher = [("1", "0.9"), ("1", "0.6"), ("0", "0.7")]
    student = [("0", "0.8"), ("1", "0.55"), ("1", "0.8")]
    teacher, student = (
        [{"label": label, "probability": p} for label, p in rows] for rows in (teacher, student)
    )
    assert most_disputed(teacher, student, 2) == [teacher[0], teacher[2]]
