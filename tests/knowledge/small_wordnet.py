"""A WordNet of a few nouns, in WordNet's format (wndb(5))."""

PARTS = {"noun": "n", "verb": "v", "adj": "a", "adv": "r"}


def write_wordnet(folder, nouns):
    """Write the files of nouns with a synset each, `noun.n.01`, which the first one is above.

    Args:
        folder: created if need be.
        nouns: lemmas in lower case, their words separated by an underscore.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for part in PARTS:
        for name in (f"data.{part}", f"index.{part}"):
            (folder / name).write_text("  1 a licence\n")
        (folder / f"{part}.exc").write_text("mice mouse\n")
    data, index = "", ""
    for noun in nouns:
        above = f"001 @ {0:08d} n 0000" if data else "000"
        index += f"{noun} n 1 1 @ 1 0 {len(data):08d}\n"
        data += f"{len(data):08d} 03 n 01 {noun} 0 {above} | a {noun}\n"
    (folder / "data.noun").write_text(data)
    (folder / "index.noun").write_text("".join(sorted(index.splitlines(keepends=True))))
    return folder
