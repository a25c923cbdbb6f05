"""Sentences of English and Korean, by a table of tricky cases: "|" stands where one begins."""

import pytest

from tfnlp.corpora.sentence_splitting import sentence_starts, split_sentences

ENGLISH = [
    "He left. | She stayed.",
    "Pi is 3.14 and e is 2.71. | Both are irrational.",
    "Dr. Smith met Mrs. Jones. | They spoke.",
    "It fell in the U.S. economy. | Prices rose.",
    "He lives in the U.S. | The house is old.",
    "It opens at 9 a.m. and closes at 5 p.m. | The shop is small.",
    "J. K. Rowling wrote it. | I read it.",
    "See Fig. 3 and No. 5 for more. | No. | That is all.",
    "Apples, pears, etc. are fruit. | Apple Inc. makes phones.",
    "Smith et al. 2019 showed it. | Others did not.",
    "Visit http://www.a.com/b.html?x=1.2 now. | It is v2.0.1 of the page.",
    'He said "Go." | Then he left.',
    '"Why?" he asked. | "Because!" | She laughed.',
    '"I am here. | Where are you?" she said.',
    "He left (she stayed.) and slept. | (It was late.) | They met.",
    "Well... maybe not. | I waited... | Nothing came.",
    "What?! | No way!!! | it is true.",
    "wait… what is it… | Nobody knows.",
    "i liked it. | it was great! | would see it again",
    "a fine film . | the plot is dull . | what ?",
    "It weighs 0 @.@ 7 kg ( 1 @.@ 5 lb ) . | It is <unk> .",
    "1. Open the box. | 2. Read it.",
    "In 1999. | There were 5. | It won.",
    "First line\n | second line\n\n | third. | Fourth",
    "She got a Ph.D. in physics. | He has an M.D. | The two are friends.",
    "It was I. | Bob knew.",
    "He left the U.S. | However, he came back at 5 p.m. | It's late, etc. | Don't ask.",
    "no end at all",
    "A ‘quoted.’ | And “another.” | Last.",
    "I gave it 7.5/10. | Worth it.",
    "On Jan. 5 we met. | In Dec. | The snow fell.",
]
KOREAN = [
    "좋아요! | 정말 좋아요? | 네.",
    "점수는 3.14점이다. | 끝.",
    "정말 재밌었다.|끝이 별로였지만.재밌었다.",
    "좋아요!|강추합니다.|꼭 보세요",
    "재밌다ㅋㅋ | 근데 길다ㅠㅠ | 또 보자",
    "ㅋㅋ 이게 영화냐? ㅋㅋㅋ",
    "중간에좀억지스러운?!내용이있긴하지만 좋다.",
    "안돼! 라는 말에서 웃었다. | 그리고 울었다.",
    "그는 \"간다.\"라고 했다. | 그녀는 '왜?' 하고 물었다.",
    "별로였다.. | 돈이 아깝다... | 진짜",
    "2019. 5. 3. 서울에서 봤다. | 좋았다.",
    "1. 연기가 좋다. | 2. 음악도 좋다.",
    "연기.스토리.음악 모두 최고",
    "좋네요~ | 또 볼게요^^ | 최고!",
    "U.S. 영화다. | Mr. 빈은 웃기다.",
    "www.naver.com에서 봤다. | 추천!",
    "영화를 보고 왔습니다.(2번째) 감동이네요.",
    "“정말 좋다.” | 그가 말했다.",
    "我来了。 | 你好！|再见",
    "첫 줄\n | 둘째 줄이다. | 끝",
    "비가 왔다.|김.A. 씨도 왔다.",
    "바다 그리고 산을 다 보았다. | 좋았어요. | 굿",
]


@pytest.mark.parametrize("text", ENGLISH + KOREAN)
def test_sentences_begin_where_the_table_says(text):
    expected = [one.strip() for one in text.split("|")]
    assert split_sentences(text.replace(" | ", " ").replace("|", "")) == expected


def test_sentence_starts_are_character_positions():
    text = "  One. Two.\n\n Three "
    assert [text[i:][:3] for i in sentence_starts(text)] == ["One", "Two", "Thr"]
    assert sentence_starts("") == sentence_starts(" \n ") == []
    assert split_sentences("") == []
    assert split_sentences("...") == ["..."] and split_sentences(". . .") == [".", ".", "."]


@pytest.mark.parametrize("unit", ["\n", "\r\n", "1. ", "2019. 5. 3. "])
def test_long_runs_of_line_ends_and_numbers_are_read(unit):
    """A quadratic search takes over 100 s, more than a test may."""
    assert len(sentence_starts("Go\n" + unit * (120_000 // len(unit)) + "on")) in (1, 2, 3)
