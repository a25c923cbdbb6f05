"""Tagged words or characters from column files."""

import dataclasses
import itertools
import pathlib
import re

from tfnlp.text.reading.readers import holds_objects, read_lines, read_objects
from tfnlp.utils.errors import InputError, unknown_name

# The units that are tagged.
UNITS = ("word", "character")
# BIO: outside, beginning or inside of an entity of some type.
BIO = ("O", "B-x", "I-x")
BIO_TAG = re.compile(r"O|[BI]-.+")
# Fields of the words, and of their tags, in rows of JSON and Parquet; the first that is there.
WORD_FIELDS, TAG_FIELDS = ("tokens", "words"), ("tags", "ner_tags", "labels")
# White space around columns.
_GAPS = " \t\r"
_COMMENT = re.compile(r"#+ ")


@dataclasses.dataclass
class TaggedSentences:
    """Sentences of words or characters with a tag each.

    Args:
        sentences: a list of lists of words; for characters a list of strings.
        tags: a list of lists of tags, or None.
    """

    sentences: list
    tags: list | None = None

    def __len__(self):
        return len(self.sentences)

    @property
    def texts(self):
        """The sentences as strings, with words joined by spaces."""
        return [s if isinstance(s, str) else " ".join(s) for s in self.sentences]


def read_tagged(path, tag_names=None, unit="word", comment_prefix=None):
    """Read a file with a word (or a character) and its tag on each line, or rows of lists.

    A row of JSON, JSON Lines or Parquet has a list of words, `tokens` or `words`, and one of as
    many tags, `tags`, `ner_tags` or `labels`.

    Sentences end with an empty line. For words the format is CoNLL: the word first and the tag
    last, separated by tabs, in which case a word may hold spaces, or by spaces. All lines have as
    many columns as the first. Lines that begin with `-DOCSTART-`, and comments (`#` or `##` and
    a space before a sentence, without a tab), are skipped.

    For characters the format is KLUE-NER: a character, which may be a space, a tab and its tag.
    Lines that begin with `##` are skipped unless they are a character with its tag.

    Args:
        path: the file.
        tag_names: the allowed tags; where None, those of BIO (`O`, `B-x`, `I-x`).
        unit: "word" or "character".
        comment_prefix: the prefix of lines that are skipped anywhere; where None, the rules above.

    Raises:
        InputError: if the file is missing, empty or not UTF-8, a line has no tag or other columns
            than the first, a line of characters holds more than one, or a tag is not allowed.
    """
    path = pathlib.Path(path)
    check_unit(unit)
    allowed = set(tag_names).__contains__ if tag_names else BIO_TAG.fullmatch
    if holds_objects(path):
        rows = _object_rows(path, unit)
    elif unit == "character":
        rows = _character_rows(path, comment_prefix or "##")
    else:
        rows = _word_rows(path, allowed, comment_prefix)

    def words_and_tags():
        for place, word, tag in rows:
            if word is not None and not allowed(tag):
                klue = "; KLUE-NER needs unit='character'" if word.startswith("## ") else ""
                raise InputError(
                    f"{path}, {place}: tag {tag!r} is not one of "
                    f"{', '.join(tag_names or BIO)}; leave headers out, and give all tags as "
                    f"`labels` or in the training file{klue}."
                )
            yield word, tag

    pairs = itertools.groupby(words_and_tags(), key=lambda pair: pair[0] is not None)
    columns = [[*zip(*group, strict=True)] for is_sentence, group in pairs if is_sentence]
    if not columns:
        raise InputError(f"{path} holds no sentence; it needs a {unit} and its tag on each line.")
    join = "".join if unit == "character" else list
    sentences, tags = [join(words) for words, _ in columns], [list(tags) for _, tags in columns]
    return TaggedSentences(sentences, tags)


def holds_tags(path, tag_names):
    """Return whether a file has a tag on each line, as for `read_tagged`, rather than texts.

    Args:
        path: the file.
        tag_names: the allowed tags.

    Raises:
        InputError: as in `read_lines`; or if the file is ambiguous: only some lines end in a tag,
            or all lines have equally many columns, with tabs in them or in groups between empty
            lines.
    """
    first = {}  # line with a tag (True) and without one (False); files may exceed memory
    layouts, blank, in_groups = set(), False, False
    for _, line in read_lines(path):
        in_groups |= blank  # blank lines but the last
        blank = not line.strip()
        # Lines that `read_tagged` may skip are no evidence.
        if not blank and not line.startswith(("#", "-DOC")):
            values, layout = _columns(line)
            first.setdefault(len(values) > 1 and values[-1] in tag_names, line)
            layouts.add(layout)
    if False not in first:
        return True in first
    shown = first.get(True, first[False])
    if True in first or (len(layouts) == 1 and (in_groups or "\t" in shown)):
        raise InputError(
            f"{path} may have a word and its tag on each line, such as {shown!r}, or a text; give "
            "tagged=True or tagged=False."
        )
    return False


def check_unit(unit):
    """Raise an InputError for a value that is not in `UNITS`."""
    if unit not in UNITS:
        raise unknown_name("unit", unit, UNITS)


def tag_names(examples):
    """Return the tags of sentences, "O" first, then sorted."""
    names = {tag for tags in examples.tags for tag in tags}
    return sorted(names, key=lambda tag: (tag != "O", tag))


def _character_rows(path, comment_prefix):
    """Yield (place, character, tag), with None for both at a sentence end."""
    for number, line in read_lines(path):
        place = f"line {number}"
        character, tab, tag = line[:1], line[1:2], line[2:].strip()
        if not line.strip():
            yield place, None, None
        elif tab == "\t" and tag and "\t" not in tag:
            yield place, character, tag
        elif not line.startswith(comment_prefix):
            raise InputError(
                f"{path}, line {number}: {line!r} is not one character, a tab and one tag, as "
                "unit='character' requires."
            )


def _word_rows(path, allowed, comment_prefix):
    """Yield (place, word, tag), with None for both at a sentence end."""
    layout = None  # of the first line with a word
    inside = False  # of a sentence
    for number, line in read_lines(path):
        columns, line_layout = _columns(line)
        if comment_prefix and line.startswith(comment_prefix):
            continue
        if not columns or columns[0] == "-DOCSTART-":
            inside = False
            yield f"line {number}", None, None
            continue
        like_others = layout in (None, line_layout)
        word_and_tag = like_others and allowed(columns[-1])  # "# O" is one too
        if not inside and not word_and_tag and _COMMENT.match(line) and "\t" not in line:
            continue
        if len(columns) < 2 or not columns[0] or not like_others:
            raise InputError(
                f"{path}, line {number}: {line!r} is no word with its tag in as many columns, by "
                "tabs or by spaces, as the lines before; where each line is one character, give "
                "unit='character'."
            )
        layout, inside = line_layout, True
        yield f"line {number}", columns[0], columns[-1]


def _object_rows(path, unit):
    """Yield (place, word, tag) of rows of lists, with None for both at a sentence end."""
    for place, row in read_objects(path):
        words, tags = (
            next((row[name] for name in names if name in row), None)
            for names in (WORD_FIELDS, TAG_FIELDS)
        )
        if isinstance(words, str) and unit == "character":
            words = [*words]
        for names, values in ((WORD_FIELDS, words), (TAG_FIELDS, tags)):
            if not isinstance(values, list) or not all(isinstance(v, str) for v in values):
                raise InputError(
                    f"{path}, {place}: needs a list of strings as one of {', '.join(names)}; give "
                    "tags by name, not by number."
                )
        if len(words) != len(tags):
            raise InputError(f"{path}, {place}: has {len(words)} words and {len(tags)} tags.")
        if unit == "character" and any(len(word) != 1 for word in words):
            raise InputError(f"{path}, {place}: unit='character' needs words of one character.")
        for word, tag in zip(words, tags, strict=True):
            yield place, word, tag
        yield place, None, None


def _columns(line):
    """Return a line's columns, and their separator with their number.

    Tabs separate the columns if the line has any, else spaces.
    """
    if not line.strip():
        return [], None
    if "\t" in line:
        # A word may be or hold other white space, such as a no-break space.
        columns = [column.strip(_GAPS) for column in line.split("\t")]
        return columns, ("\t", len(columns))
    columns = [column for column in line.split(" ") if column]
    return columns, (" ", len(columns))
