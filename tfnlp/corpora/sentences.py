"""Where sentences begin in English and Korean text, by rules.

A sentence ends at the end of a line, and at a mark such as `.`, `?` or `…` with white space behind
it, quotes and brackets that close counted to it, unless what stands around says otherwise: an
abbreviation, an initial, a number, a small letter after a pause or a quote, a Korean particle of
quoting. In Korean a mark behind the ending of a verb (`다.`, `요!`, `까?`) needs no white space,
and `ㅋㅋ`, `ㅠㅠ`, `^^` and `~` behind an ending, or behind a mark, end a sentence as a mark does.
"""

import itertools
import re


def _words(text):
    return frozenset(text.split())


# Words before a period after which a sentence does not end.
_NEVER_LAST = _words(
    "mr mrs ms mx dr prof rev hon gen col lt sgt capt cmdr adm gov sen rep pres st mt ft messrs "
    "mme mlle vs cf eg ie viz approx ca fig figs eq eqs sec ch vol vols pp ed eds resp "
    "e.g i.e"
)
# Those after which it ends where the next word begins a sentence as a rule.
_SELDOM_LAST = _words(
    "etc inc ltd co corp jr sr al bros dept univ assn est ave blvd rd jan feb mar apr jun jul aug "
    "sep sept oct nov dec ph.d m.d b.a m.a b.sc m.sc ph b.c a.d a.m p.m"
)
# Those that a number follows where they are abbreviations.
_BEFORE_NUMBERS = _words("no nos p art op")
# Words that begin sentences and are seldom names.
_STARTERS = _words(
    "The A An This That These Those There Here He She It We They I You His Her Its Our Their My "
    "Your But And Or So If When While Where What Who Why How Although Though Because Since As "
    "After Before At In On By For From With Yet Then Now However Some Many Most All No Not One "
    "Another Each Both Even Still Also Once Do Don Did Is Was Are Were Has Have Had"
)
_CLOSERS = "\"'”’»)\\]}」』》〉"
_OPENERS = "\"'“‘«(\\[{「『《〈"
# How verbs end, and what is written for them in chats and reviews.
_ENDINGS = "다요죠까네음임함됨슴군걸듯냐니지야어아래ㅁ"
# Of these a mark may follow without white space behind it.
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
# What follows a quote within its sentence.
_QUOTING = re.compile(r"이?라(고|는|며|면서|던|니)")
_QUOTING_APART = re.compile(r"하(고|는|며|던)$")
_NUMBER = re.compile(r"\d+")
_IN_DATE = re.compile(r"\d\.\s*$")


def split_sentences(text):
    """The sentences of a text, without the white space around them.

    Args:
        text: a string; ends of lines end sentences.
    """
    starts = sentence_starts(text)
    return [text[a:b].strip() for a, b in itertools.pairwise([*starts, len(text)])]


def sentence_starts(text):
    """Where each sentence of a text begins, a list of places of what is no white space.

    Args:
        text: a string; ends of lines end sentences.
    """
    begin = _after_space(text, 0)
    starts = [begin] if begin < len(text) else []
    for match in _MARK.finditer(text):
        end = match.end()
        after = _after_space(text, end)
        if match.start() < begin:  # an end of a line among white space
            continue
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
    """Whether a sentence ends with a mark, what follows it beginning at `after`."""
    mark, spaced = match["mark"], after > match.end()
    if mark is None:  # an ending and a laugh alone
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
        # "음.." and the like are no verbs.
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


def _period_ends(text, begin, match, following):
    """Whether a period that white space follows ends a sentence, by the words around it."""
    found = _WORD_BEFORE.search(text, max(begin, match.start() - 40), match.start())
    if not found:
        return True  # a period on its own, as in tokenised text
    word = found[0]
    if _NUMBER.fullmatch(word):
        # "1. An item" in a list, and dates such as "2019. 5. 3."
        listed = found.start() == begin or _IN_DATE.search(text, begin, found.start())
        return not listed and not following[:1].isdigit()
    lower = word.lower()
    if lower in _NEVER_LAST:
        return False
    if lower in _BEFORE_NUMBERS and following[:1].isdigit():
        return False
    if (_INITIALS.fullmatch(word) and word != "I") or lower in _SELDOM_LAST:
        return following.rstrip(",;:.!?") in _STARTERS
    return True
