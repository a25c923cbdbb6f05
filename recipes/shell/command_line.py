"""Command line of the recipes: --help by groups of flags, and errors in one sentence."""

import contextlib
import difflib
import math
import os
import re
import shutil
import sys
import textwrap

from absl import flags

from tfnlp.utils.errors import InputError
from tfnlp.utils.files import check_writable

FLAGS = flags.FLAGS
# Flags of other programs, among them the examples of transformers, and those that are like them.
ELSEWHERE = {
    "precision": "fp16 bf16 float16 use_fp16 half amp mixed_precision dtype",
    "strategy": "gpu gpus num_gpus n_gpu n_gpus device devices cuda",
    "learning_rate": "lr",
    "weight_decay": "wd l2",
    "epochs": "num_train_epochs num_epochs",
    "batch_size": "per_device_train_batch_size train_batch_size",
    "accumulation_steps": "gradient_accumulation_steps",
    "max_length": "max_seq_length max_len max_seq_len",
    "model_dir": "model model_name_or_path model_name",
    "train": "train_file train_data",
    "dev": "validation_file eval_file valid validation",
    "patience": "early_stopping_patience early_stopping early_stopping_rounds",
    "checkpoint_steps": "save_steps",
    "text_column": "text text_field",
    "label_column": "label label_field target score_column",
}
_titles = {}
_hidden = set()
aliases = set()  # second names of flags


@contextlib.contextmanager
def pipe_may_close():
    """Exit without a traceback where the reader of what is printed, such as `head`, has closed."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        # Python would flush once more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)


@contextlib.contextmanager
def group(title):
    """Title the flags in `--help` that are defined in the context or by the decorated function."""
    before = set(FLAGS)
    yield
    for name in set(FLAGS) - before:
        _titles.setdefault(name, title)


def hide(*names):
    """Leave flags that few need out of `--help`; `--help-all` lists them."""
    _hidden.update(names)


def define_alias(name, flag):
    """Define a second name of a flag, which other recipes give to what it is."""
    flags.DEFINE_alias(name, flag, module_name="absl.app")  # not among the recipe's own
    aliases.add(name)


def recipe_flags():
    """Return {name: flag} of the recipe and of the `recipes` modules that it imports."""
    by_module = FLAGS.flags_by_module_dict()
    main = sys.argv[0]  # absl's name of the main module
    modules = [main, *(name for name in by_module if name.startswith("recipes.") and name != main)]
    return {flag.name: flag for module in modules for flag in by_module.get(module, ())}


def parse(argv):
    """Parse the flags; print the help for `--help` and `-h`, or the error of a bad command line.

    Returns:
        A list with the program's name.

    Raises:
        SystemExit: with status 0 after the help, 2 after an error.
    """
    for name in ("help", "helpshort", "h", "?", "help-all", "help_all"):
        flags.DEFINE_flag(_Help(name), module_name="absl.app")
    FLAGS.set_gnu_getopt(True)  # also parse flags that follow a positional word
    try:
        words = FLAGS(argv)
    except (flags.Error, ValueError) as e:
        fail(_missing() or _what_is_wrong(e))
    if len(words) > 1:
        fail(
            f"{words[1]!r} is no flag: flags begin with --, and a value that has spaces "
            "stands in quotes."
        )
    for name, flag in recipe_flags().items():
        if isinstance(flag.value, float) and not math.isfinite(flag.value):
            fail(f"--{name}={flag.value} must be {_expected(flag)}.")
        if name.endswith("_column") and flag.default and not flag.value and name != "pair_column":
            fail(f"--{name} is empty; name a column, such as {flag.default}.")
    # absl accepts an empty value of a required flag; reject it here.
    if missing := _missing():
        fail(missing)
    return words


def fail(message):
    """Print an error and exit with status 2."""
    print(f"Error: {message}", file=sys.stderr)
    sys.exit(2)


def no_effect(flag, where, way="leave it out"):
    """Return the InputError of a flag without effect."""
    return InputError(f"{flag}={flag_text(FLAGS[flag].value)} has no effect {where}; {way}.")


def flag_text(value):
    """Return a flag's value as written on a command line."""
    if isinstance(value, list):
        return ",".join(map(str, value))
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


def refuse_beside(names, beside):
    """Raise an InputError for the first of these flags that is given although `beside` decides."""
    for name in names:
        if not FLAGS[name].using_default_value:
            raise no_effect(name, f"beside {beside}", "leave one out")


def refuse_without(names, needed):
    """Raise an InputError for the first of these flags that is given without the flag it needs."""
    for name in names:
        if not (FLAGS[name].using_default_value or FLAGS[needed].value):
            raise no_effect(name, f"without `{needed}`", "give it, or leave this out")


def require_one(file, first, *others):
    """Raise an InputError unless either a file's flag or others are given."""
    if bool(FLAGS[file].value) == any(FLAGS[name].value for name in (first, *others)):
        raise InputError(f"Give either --{first} or --{file}.")


def read_numbers(name, kind=int):
    """Return the numbers of a list flag, integers or floats; None if it is not given."""
    try:
        return FLAGS[name].value and [kind(number) for number in FLAGS[name].value]
    except ValueError:
        numbers = "whole numbers" if kind is int else "numbers"
        shown = flag_text(FLAGS[name].value)
        raise InputError(f"{name}={shown} must be {numbers} with commas between.") from None


def unescaped(text):
    """Replace \\n and \\t of a shell argument by line breaks and tabs."""
    return text.replace("\\n", "\n").replace("\\t", "\t")


def check_output(name, *endings):
    """Raise an InputError unless a flag's file could be written and has one of the endings."""
    path = FLAGS[name].value
    if not path.endswith(endings):
        raise InputError(f"{name}={path} must end in {' or '.join(endings)}.")
    check_writable(path)


def help_text(rare):
    """Return the recipe's docstring and its flags by groups, required ones first, or rare too."""
    width = min(shutil.get_terminal_size().columns, 100)
    groups, shown = {"Required": []}, recipe_flags()
    hidden = _hidden & shown.keys() if not rare else set()
    for name, flag in shown.items():
        if name in hidden:
            continue
        title = "Required" if _required(flag) else _titles.get(name, "This recipe")
        groups.setdefault(title, []).append(flag)
    names = {flag.name: _shown_name(flag) for group in groups.values() for flag in group}
    column = max(map(len, names.values()), default=0) + 4
    lines = [sys.modules["__main__"].__doc__.strip()]
    for title, members in groups.items():
        lines += ["", f"{title}:"] if members else []
        for flag in members:
            wrapped = textwrap.wrap(_explained(flag), max(width - column, 30))
            lines.append(f"  {names[flag.name]}".ljust(column) + wrapped[0])
            lines += [" " * column + line for line in wrapped[1:]]
    more = f"--help-all lists {len(hidden)} more, which few need; " if hidden else ""
    return "\n".join([*lines, "", f"{more}--helpfull lists the flags of libraries as well."])


class _Help(flags.BooleanFlag):
    """Boolean flag that prints the help and exits when it is given."""

    def __init__(self, name):
        super().__init__(name, False, "show this help", allow_override=True)

    def parse(self, argument):
        if self._parse(argument):
            print(help_text(rare=self.name in ("help-all", "help_all")))
            sys.exit()


def _required(flag):
    def accepts_none(validator):
        try:
            return validator.checker(None)
        except flags.ValidationError:
            return False

    of_one = [x for x in flag.validators if not hasattr(x, "flag_names")]  # of several: no
    return flag.default is None and not all(map(accepts_none, of_one))


def _missing():
    """Return the error message for missing required flags, or None."""
    flags_left = [flag for flag in recipe_flags().values() if _required(flag)]
    names = [f"--{flag.name}" for flag in flags_left if flag.value in (None, "", [])]
    if not FLAGS.is_parsed() or not names:
        return None
    return f"{_joined(names, 'and')} must be given; --help explains them."


def _what_is_wrong(error):
    """Return absl's error for a bad command line as one sentence."""
    message = " ".join(str(error).split())
    if isinstance(error, flags.UnrecognizedFlagError):
        return unknown_flag(error.flagname)
    if match := re.match(r"Missing value for flag -*(\w+)", message):
        return f"--{match[1]} needs a value, as in --{match[1]}=VALUE."
    if match := re.match(r"-*(\w+)=.* does not take an argument", message):
        return f"--{match[1]} takes no value."
    if match := re.search(r"Exactly one of \((.*)\) must have a value", message):
        return f"Give either --{match[1].replace(', ', ' or --')}."
    match = re.match(r"flag --(\w+)=", message)
    expected = _expected(FLAGS[match[1]]) if match else ""
    if expected:
        value = str(error).removeprefix("flag ").removesuffix(f": {error.__context__}")
        return f"{value} must be {expected}."
    return message.removeprefix("ERROR:: ")


def unknown_flag(name):
    """Return the error message for an unknown flag, with flags that are spelt like it."""
    plain, names = name.replace("-", "_"), list(recipe_flags())
    alike = [ours for ours in names if plain in ELSEWHERE.get(ours, "").split()]
    alike = alike or difflib.get_close_matches(plain, names)
    if not alike:
        return f"There is no flag --{name}; --help-all lists all flags."
    return f"There is no flag --{name}; did you mean {_joined([f'--{n}' for n in alike], 'or')}?"


def _shown_name(flag):
    return f"--[no]{flag.name}" if flag.boolean else f"--{flag.name}"


def _explained(flag):
    """Return a flag's help with its allowed values and default."""
    text = flag.help
    if isinstance(flag.parser, flags.EnumParser):  # absl prefixes the help with the choices
        text = text.removeprefix(f"<{'|'.join(flag.parser.enum_values)}>: ")
    text = re.sub(r";\s+repeat this option to specify a list of values$", "", text)
    default = None if flag.default in (None, "", []) else f"default: {flag_text(flag.default)}"
    again = "may be given again" if isinstance(flag, flags.MultiFlag) else None
    facts = [None if flag.boolean else _expected(flag), again, default]
    facts = "; ".join(fact for fact in facts if fact)
    return f"{text} [{facts}]" if facts else text


def _expected(flag):
    """Return a description of a flag's allowed values, empty if any text is allowed."""
    parser = flag.parser
    if isinstance(parser, flags.EnumParser):
        return f"one of {_joined(parser.enum_values, 'or')}"
    if isinstance(parser, flags.BooleanParser):
        return "true or false"
    if isinstance(parser, flags.ListParser):
        return "values with commas between"
    if isinstance(parser, flags.IntegerParser | flags.FloatParser):
        kind = "a whole number" if isinstance(parser, flags.IntegerParser) else "a number"
        low, high = parser.lower_bound, parser.upper_bound
        if high is None:
            return kind if low is None else f"{kind}, {low} or more"
        return f"{kind}, {high} or less" if low is None else f"{kind} from {low} to {high}"
    return ""


def _joined(words, last):
    """Join words as in `a, b and c`."""
    *others, end = words
    return f"{', '.join(others)} {last} {end}" if others else end
