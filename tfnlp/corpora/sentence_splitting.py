"""Rule-based sentence segmentation of English and Korean text.

A sentence ends at the end of a line. It also ends at a mark such as `.`, `?` or `…`
with white space behind it, including closing quotes and brackets, with these
exceptions: an abbreviation, an initial, a number, a lower-case letter after a pause or
a quote, or a Korean quotative particle. In Korean a mark behind a verb ending (`다.`,
`요!`, `까?`) needs no white space. `ㅋㅋ`, `ㅠㅠ`, `^^` and `~` behind an ending or a mark
end a sentence like a mark.
"""

import itertools
import re


def _words(text):
    return frozenset(text.split())


# Abbreviations after which a sentence does not end.
_NEVER_LAST = _words(
    "mr mrs ms mx dr prof rev hon gen col lt sgt capt cmdr adm gov sen rep pres st mt ft messrs "
    "mme mlle vs cf eg ie viz approx ca fig figs eq eqs sec ch vol vols pp ed eds resp "
    "e.g i.e"
)
# Abbreviations after which a sentence ends if the next word usually begins one.
_SELDOM_LAST = _words(
    "etc inc ltd co corp jr sr al bros dept univ assn est ave blvd rd jan feb mar apr jun jul aug "
    "sep sept oct nov dec ph.d m.d b.a m.a b.sc m.sc ph b.c a.d a.m p.m"
)
# Words that are abbreviations if a number follows.
_BEFORE_NUMBERS = _words("no nos p art op")
# Words that often begin sentences and are seldom names.
_STARTERS = _words(
    "The A An This That These Those There Here He She It We They I You His Her Its Our Their My "
    "Your But And Or So If When While Where What Who Why How Although Though Because Since As "
    "After Before At In On By For From With Yet Then Now However Some Many Most All No Not One "
    "Another Each Both Even Still Also Once Do Don Did Is Was Are Were Has Have Had"
)
_CLOSERS = "\"'”’»)\\]}」』》〉"
_OPENERS = "\"'“‘«(\\[{「『《〈"
# Verb endings, including those of chats and reviews.
_ENDINGS = "다요죠까네음임함됨슴군걸듯냐니지야어아래ㅁ"
# Endings behind which a mark needs no white space.
_SURE_ENDINGS = "다요죠까네음임함됨슴군냐"
_LAUGHS = "ㅋㅎㅠㅜㅡ~^♥♡;"
_MARK = re.compile(
    rf"(?P<mark>[.!?…。！？｡]+)(?P<rest>[{_CLOSERS}]*)(?P<laugh>(?:[ \t]?[{_LAUGHS}]+[.!?…]*)*)"
    rf"|(?<=[{_ENDINGS}])[ \t]?(?P<laugh_alone>[{_LAUGHS}]{{1,}})(?=\s)"
    rf"|(?P<line>\n)"
)
_NEXT = re.compile(rf"\s*(?P<openers>[{_OPENERS}]*)(?P<word>[^\s{_CLOSERS}{_OPENERS}]*)")
_WORD_BEFORE = re.compile(rf"[^\s{_OPENERS}]+$")
_INITIALS = re.compile(r"[^\W\d_](\.[^\W\d_])*")
# Quotative particles behind a quote within a sentence.
_QUOTING = re.compile(r"이?라(고|는|며|면서|던|니)")
_QUOTING_APART = re.compile(r"하(고|는|며|던)$")
_NUMBER = re.compile(r"\d+")
_IN_DATE = re.compile(r"\d\.\s*$")


def split_sentences(text):
    """Return the sentences of a text without surrounding white space.

    Args:
        text: a string; line ends are sentence ends.
    """
    starts = sentence_starts(text)
    return [text[a:b].strip() for a, b in itertools.pairwise([*starts, len(text)])]


def sentence_starts(text):
    """Return the position of the first character of each sentence, a list.

    Such a character is never white space.

    Args:
        text: a string; line ends are sentence ends.
    """
    begin = _after_space(text, 0)
    starts = [begin] if begin < len(text) else []
    for match in _MARK.finditer(text):
        if match.start() < begin:  # a line end within white space
            continue
        after = _after_space(text, match.end())
        if after >= len(text):
            break
        if match["line"] or _ends_sentence(text, begin, match, after):
            starts.append(after)
            begin = after
    return starts


def _after_space(text, place):
    while place < len(text) and text[place].isspace():
        place += 1
    return place


def _ends_sentence(text, begin, match, after):
    """Return whether a mark ends a sentence, with the following text starting at `after`."""
    mark, spaced = match["mark"], after > match.end()
    if mark is None:  # a verb ending and laughter alone
        return True
    if mark[-1] in "。！？｡":
        return True
    before = text[match.start() - 1] if match.start() > begin else " "
    korean = _is_hangul(before)
    if not spaced:
        return before in _SURE_ENDINGS and not match["rest"] and _is_hangul(text[after])
    word = _NEXT.match(text, after)["word"]
    if match["laugh"]:
        return True
    if _QUOTING.match(word) or (match["rest"] and _QUOTING_APART.match(word)):
        return False
    if korean:
        # "음.." and similar are not verbs.
        ended = before in _ENDINGS and _is_hangul(text[match.start() - 2 : match.start() - 1])
        return ended or not _is_pause(mark)
    small = word[:1].islower()
    if small and (match["rest"] or _is_pause(mark)):
        return False
    return mark != "." or bool(match["rest"]) or _period_ends(text, begin, match, word)


def _is_hangul(character):
    return "가" <= character <= "힣" or character == "ㅁ"


def _is_pause(mark):
    return mark.startswith(("..", "…")) and not mark.endswith(("!", "?"))


def _period_ends(text, begin, period, following):
    """Return whether a period followed by white space ends a sentence, by the words around it."""
    # Places further back are not looked at, so that time is linear in the text.
    word_match = _WORD_BEFORE.search(text, max(begin, period.start() - 40), period.start())
    if not word_match:
        return True  # a separate period, as in tokenised text
    word = word_match[0]
    if _NUMBER.fullmatch(word):
        # "1. An item" in a list, and dates such as "2019. 5. 3."
        start = word_match.start()
        listed = start == begin or _IN_DATE.search(text, max(begin, start - 40), start)
        return not listed and not following[:1].isdigit()
    lower = word.lower()
    if lower in _NEVER_LAST:
        return False
    if lower in _BEFORE_NUMBERS and following[:1].isdigit():
        return False
    if (_INITIALS.fullmatch(word) and word != "I") or lower in _SELDOM_LAST:
        return following.rstrip(",;:.!?") in _STARTERS
    return True
