"""ConceptNet's assertions file as a graph (Speer et al. 2017)."""

from tfnlp.knowledge.graph import KnowledgeGraph
from tfnlp.text.reading.lines import read_lines
from tfnlp.utils.errors import InputError
from tfnlp.utils.progress import progress_bar


def read_conceptnet(path, language="en"):
    """Read the assertions between words of a language.

    A line has five columns, separated by tabs: the URI of the assertion, of the relation
    (/r/IsA), of the start and of the end (/c/en/hot_dog/n), and details in JSON. The entities are
    the words (`hot_dog`) without their part of speech or sense, so that a word has one entity.

    Args:
        path: the file, gzipped if its name ends in .gz.
        language: the language's code; 'ko' reads Korean.

    Raises:
        InputError: if a line is malformed, or no assertion is in the language.
    """
    with progress_bar(read_lines(path), desc="assertions", unit="line") as lines:
        graph = KnowledgeGraph.from_names(
            triple
            for number, line in lines
            if (triple := _read_assertion(line, language, f"{path}, line {number}"))
        )
    if not graph.entities:
        raise InputError(f"{path} has no assertion between two words of language={language}.")
    return graph


def _read_assertion(line, language, place):
    """Return (start, relation, end), or None if a word is of another language."""
    columns = line.split("\t")
    if len(columns) != 5 or not columns[1].startswith("/r/"):
        raise InputError(
            f"{place}: expected five columns, /a/..., /r/relation, start, end and details; give "
            "ConceptNet's assertions file."
        )
    _, relation, *ends, _ = columns
    if not all(end.startswith(f"/c/{language}/") for end in ends):
        return None
    start, end = (uri.split("/")[3] for uri in ends)
    return start, relation.removeprefix("/r/"), end
