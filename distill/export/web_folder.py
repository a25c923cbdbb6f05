"""Folder that runs a file in a browser: the file, a page, a module, and LiteRT for the web.

The sources are in `distill/export/web`: TypeScript, which npm bundles with Hugging Face's
tokenizers and LiteRT's package, in the versions of its package-lock.json.
"""

import dataclasses
import itertools
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unicodedata

import tokenizers

from distill.export.character_rules import normalized, word_rules
from distill.runtime.associated_files import LABELS_FILE, TOKENIZER_FILE, check_kind, read_files
from distill.runtime.litert_backend import read_tokenizer
from tfnlp.plots.html_page import page_file
from tfnlp.tasks.kinds import ANSWERER, CLASSIFIER, EMBEDDER, MULTI_LABEL_CLASSIFIER, TAGGER
from tfnlp.text import UnigramTokenizer, WordPieceTokenizer
from tfnlp.utils.errors import InputError
from tfnlp.utils.files import write_json, write_text

SOURCES = pathlib.Path(__file__).with_name("web")
# Those of src/tfnlp.ts.
WEB_KINDS = (CLASSIFIER, MULTI_LABEL_CLASSIFIER, TAGGER, ANSWERER, EMBEDDER)
# Packages whose code is in the folder; a browser without relaxed SIMD takes "compat".
PACKAGES = ("@huggingface/tokenizers", "@litertjs/core", "@litertjs/wasm-utils")
RUNTIMES = ("litert_wasm_internal", "litert_wasm_compat_internal")
# TypeScript checks alone; no package runs scripts of its own; nothing is sent for an audit.
NPM_OPTIONS = {"NPM_CONFIG_OMIT": "dev", "NPM_CONFIG_IGNORE_SCRIPTS": "true"}
NPM_OPTIONS |= {"NPM_CONFIG_AUDIT": "false", "NPM_CONFIG_FUND": "false"}
SURROGATES = (0xD800, 0xDFFF)
SHORT_LENGTHS = (32, 128)
# The rules of XLM-R's tokenizer.json that src/unigram.ts follows.
XLM_R_RULES = {
    "normalizer": {
        "type": "Sequence",
        "normalizers": [
            {"type": "Nmt"},
            {"type": "NFKC"},
            {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "},
        ],
    },
    "pre_tokenizer": {
        "type": "Metaspace",
        "replacement": "\u2581",
        "prepend_scheme": "always",
        "split": True,
    },
}


def check_web(kind, tokenizer):
    """Raise an InputError if a model cannot run in the page, or npm is missing.

    Args:
        kind: the `Kind` of its file.
        tokenizer: the model's.
    """
    if kind not in WEB_KINDS:
        names = ", ".join(map(str, WEB_KINDS))
        raise InputError(f"`web` is for {names}, and the model is a {kind}; leave it out.")
    if tokenizer.added_tokens or not (
        isinstance(tokenizer, WordPieceTokenizer) or _reads_as_xlm_r(tokenizer)
    ):
        raise InputError(
            "`web` takes WordPiece, or XLM-R's pieces normalised by NFKC, without added tokens, "
            "and the model has another tokenizer; leave it out."
        )
    if kind in (TAGGER, ANSWERER) and not isinstance(tokenizer, WordPieceTokenizer):
        raise InputError(
            f"`web` runs a {kind} with WordPiece alone, whose places in a text it knows; leave it "
            "out."
        )
    if shutil.which("npm") is None:
        raise InputError(
            "`web` builds the page by npm, which is not on the PATH; install Node.js 20 or newer."
        )


def _reads_as_xlm_r(tokenizer):
    """Return whether a tokenizer reads texts as `src/unigram.ts` does."""
    if not isinstance(tokenizer, UnigramTokenizer) or tokenizer.family != "xlm-roberta":
        return False
    content = json.loads(tokenizer.to_json())
    return all(content[name] == rules for name, rules in XLM_R_RULES.items())


def web_options(options, kind):
    """Return the `Export` options of a file for the page.

    LiteRT for the web runs any length, but has no outputs of any length. So a file with outputs
    by token gets signatures of fixed lengths, up to the longest.

    Args:
        options: `Export`, with a `max_length`.
        kind: the `Kind` of the file.
    """
    longest = options.max_length
    if not kind.by_token or options.fixed_only:
        return options
    lengths = {n for n in options.fixed_lengths or SHORT_LENGTHS if n < longest} | {longest}
    return dataclasses.replace(options, fixed_lengths=tuple(sorted(lengths)))


def write_web_folder(path, folder, name):
    """Write the folder of a file.

    Args:
        path: of a .tflite file by `web_options`, whose model passed `check_web`.
        folder: to write into; its files of the same names are replaced.
        name: of the model, the title of the page.

    Raises:
        InputError: if npm cannot build the page, or the folder cannot be written.
    """
    folder = pathlib.Path(folder)
    build_page(folder)
    write_model(path, folder, name)


def build_page(folder):
    """Write the page, its module, LiteRT for the web and the licences, by npm.

    Raises:
        InputError: if npm fails.
    """
    with tempfile.TemporaryDirectory() as place:
        build = pathlib.Path(place) / "web"
        shutil.copytree(SOURCES, build, ignore=shutil.ignore_patterns("node_modules", "dist"))
        _npm(build, "ci")
        _npm(build, "run", "build")
        modules = build / "node_modules"
        runtime = modules / "@litertjs/core/wasm"
        scripts = [runtime / f"{name}.{end}" for name in RUNTIMES for end in ("js", "wasm")]
        folder.mkdir(parents=True, exist_ok=True)
        for file in (build / "index.html", *(build / "dist").iterdir(), *scripts):
            shutil.copyfile(file, folder / file.name)
        write_text(folder / "LICENCES.txt", _licences(modules))
    form = (SOURCES / "form.css").read_text("utf-8")
    write_text(folder / "style.css", page_file("page.css") + form)


def write_model(path, folder, name):
    """Write the files of a model beside a page; arguments as in `write_web_folder`."""
    settings, files = read_files(path)
    tokenizer = read_tokenizer(path, settings, files)
    contents = {
        "kind": check_kind(path, settings).name,
        "name": name,
        "labels": files[LABELS_FILE].split("\n") if LABELS_FILE in files else [],
        "max_length": settings["model_max_length"],
        "task": settings.get("task", {}),
        "rules": character_rules(tokenizer),
    }
    shutil.copyfile(path, folder / "model.tflite")
    write_text(folder / TOKENIZER_FILE, tokenizer.to_json())
    write_json(folder / "settings.json", contents)


def character_rules(tokenizer):
    """Return the rules of code points of a tokenizer, in the form of src/tokens.ts.

    Returns:
        {"ranges": {reading: [first, last, first, last, ...]}, "changed": {code point: reading}}.
        In the readings of ranges "@" stands for the code point, and "NFD" and "NFKC" for that
        form of it. WordPiece removes lone surrogates, as U+FFFD; XLM-R reads them as spaces.
    """
    changed, lone, form = {}, "", "NFD"
    if isinstance(tokenizer, WordPieceTokenizer):
        rules = word_rules(tokenizer.lowercase, tokenizer.strip_accents, tokenizer.split_cjk)
    else:
        normalizer = tokenizers.Tokenizer.from_str(tokenizer.to_json()).normalizer
        rules, lone, form = normalized(normalizer), " ", "NFKC"
    points = {lone: [*range(SURROGATES[0], SURROGATES[1] + 1)]}
    for character, reading in rules.items():
        general = reading.replace(character, "@")
        if reading == unicodedata.normalize(form, character):
            general = form
        if general in ("", " ", " @ ", form):
            points.setdefault(general, []).append(ord(character))
        else:
            changed[character] = reading
    return {"ranges": {x: _runs(sorted(y)) for x, y in points.items()}, "changed": changed}


def _runs(points):
    """Return the first and last number of each run of an ascending list, one after the other."""
    runs = itertools.groupby(enumerate(points), lambda pair: pair[1] - pair[0])
    runs = ([point for _, point in run] for _, run in runs)
    return [place for run in runs for place in (run[0], run[-1])]


def _npm(folder, *arguments):
    """Run npm in a folder."""
    done = subprocess.run(
        ["npm", *arguments],
        cwd=folder,
        env=os.environ | NPM_OPTIONS,
        check=False,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["no message"]
        raise InputError(
            f"npm {arguments[0]} failed ({lines[0]}); the first page needs the npm registry, "
            "those after it npm's cache."
        )


def _licences(modules):
    """Return the names, versions and licences of `PACKAGES`, and the text of the licence."""
    lines = []
    for name in PACKAGES:
        facts = json.loads((modules / name / "package.json").read_text("utf-8"))
        lines.append(f"{name} {facts['version']}: {facts['license']}")
    text = (modules / "@huggingface/tokenizers/LICENSE").read_text("utf-8")
    return "This folder holds code of these packages.\n\n" + "\n".join(lines) + f"\n\n{text}"
