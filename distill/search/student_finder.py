"""Finding of the best student within a budget, from a teacher to the file and its page."""

import dataclasses
import pathlib

import keras

from distill.compression import choose_tokens, keep_rows, task_texts
from distill.compression.compression_settings import QUANTIZATIONS
from distill.export import Export, export_tflite
from distill.learning.distillation import Distillation
from distill.learning.teacher import Teacher, load_teacher
from distill.reports import benchmark_file
from distill.search import cost_measurement
from distill.search.cost_table import Costs, Setting, read_table
from distill.search.student_search import Budget, Candidates, search
from distill.search.sub_student import SearchSpace
from distill.search.supernet import (
    StudentScorer,
    Supernet,
    SupernetDistillation,
    extract,
    order_by_importance,
)
from tfnlp.checkpoints import load_model, read_task_settings, save_model
from tfnlp.models import config_of
from tfnlp.models.build import dtype_policy
from tfnlp.text import load_tokenizer
from tfnlp.training import (
    Splits,
    content_fingerprint,
    encode_batches,
    model_fingerprint,
)
from tfnlp.utils.files import write_text

# Shares of `size_mb` that the table of tokens may take, where no numbers of tokens are given.
TABLE_SHARES = (0.35, 0.5, 0.65)
MARK = "made_of.txt"  # in a folder: the fingerprint of what its files are made of
COSTS = "costs"


@dataclasses.dataclass
class StudentFinder:
    """Search of a student of a teacher within a budget.

    Its steps are kept in a folder, each of which goes on where it stopped. Another budget takes
    the same supernet.

    | in the folder | |
    | --- | --- |
    | `ordered/` | the teacher with its heads and units in the order of their importance |
    | `costs/` | files of its parts, and the table of their times and sizes |
    | `supernet/` | the run of the supernet |
    | `tried_HASH.jsonl` | the students of a supernet that were tried, with costs and scores |
    | `starts/NAME_HASH/` | a winner as the supernet has it, to distil it otherwise |
    | `students/NAME_HASH/` | its run, and its `model.tflite` |

    Args:
        teacher_dir: folder of the teacher.
        task: see `tfnlp.tasks`.
        data: `Splits` of the task's examples.
        folder: to keep the steps in.
        start_run: function from the name of a subfolder, and a dict of what decides its result
            beside the flags, to its `RunFolder`.
        space: a `SearchSpace`.
        budget: a `Budget`.
        options: `Export` of the file, and of those that are timed.
        tokens: of the text that is timed, on one thread.

    Raises:
        InputError: as `load_teacher`, `Supernet` and `SearchSpace.complete`.
    """

    teacher_dir: str
    task: object
    data: Splits
    folder: pathlib.Path
    start_run: object
    space: SearchSpace
    budget: Budget
    options: Export
    tokens: int = 32

    def __post_init__(self):
        self.teacher = load_teacher(self.teacher_dir, self.task, dtype="float32")
        self.depth = Supernet(self.teacher).depth
        self.tokenizer = load_tokenizer(self.teacher_dir)
        config, quantization = config_of(self.teacher), self.options.quantization
        counts = default_tokens(config, self.budget.size_mb, quantization)
        self.space = self.space.complete(config, counts)
        texts = task_texts(self.data.train)
        chosen = [self._choose_tokens(texts, count) for count in self.space.keep_tokens]
        # {tokens: (their ids or None for all, tokenizer)}; texts may have fewer than asked for.
        self.vocabularies = {x[1].vocabulary_size: x for x in chosen}
        sizes = tuple(sorted(self.vocabularies))
        self.space = dataclasses.replace(self.space, keep_tokens=sizes)
        data = self.data.train, self.data.max_length
        self.made_of = content_fingerprint([model_fingerprint(self.teacher), *data])

    def order(self):
        """Write the teacher, its heads and units in the order of importance; return the folder."""
        folder, data = self.folder / "ordered", (self.data.train, self.data.max_length)
        mark = folder / MARK
        if _read_mark(mark) != self.made_of:
            model = order_by_importance(self.teacher, self.task, self.tokenizer, *data)
            mark.unlink(missing_ok=True)
            settings = read_task_settings(self.teacher_dir)
            save_model(model, folder, self.task.label_names, self.tokenizer, settings)
            write_text(mark, self.made_of)  # last, so that a killed one is made anew
        return folder

    def _load(self, folder, dtype=None):
        return load_model(folder, self.task.kind.head, self.task.num_classes, dtype=dtype)

    def _choose_tokens(self, texts, count):
        """Return the ids of at most `count` tokens, the most frequent, and their tokenizer."""
        if count >= self.tokenizer.vocabulary_size:
            return None, self.tokenizer
        return choose_tokens([self.teacher], self.tokenizer, texts, count)

    def _prune(self, model, tokens):
        kept, _ = self.vocabularies[tokens]
        return model if kept is None else keep_rows(model, kept)

    def with_tokens(self, model):
        """Return {vocabulary size: (a supernet's model, tokenizer)} of the space."""
        vocabularies = self.vocabularies.items()
        return {size: (self._prune(model, size), x) for size, (_, x) in vocabularies}

    def measure(self, device=None, results=None):
        """Return the `CostTable` of files of the ordered teacher's parts.

        Args:
            device: that they run on; this machine where None.
            results: as in `read_results`; None to time the files here.
        """
        folder = self.folder / COSTS
        table_path = folder / "costs.tsv"
        head = str(self.task.kind), self.task.label_names
        made_of = content_fingerprint([config_of(self.teacher), *head, self.options])
        if _read_mark(folder / MARK) != made_of:
            for path in (*folder.glob("*.tflite"), table_path):
                path.unlink(missing_ok=True)
            write_text(folder / MARK, made_of)
        paths = cost_measurement.file_paths(self.space, folder, self.options.fixed_lengths)
        setting = self.setting(device)
        with dtype_policy("float32"):  # which files are made of, whatever the training's
            models, labels = self.with_tokens(self._load(self.order())), self.task.label_names
            cost_measurement.write_files(paths, models, labels, self.options)
        if results is not None:
            return cost_measurement.read_results(paths, table_path, results, setting, self.tokens)
        return cost_measurement.measure(paths, table_path, setting)

    def setting(self, device=None):
        """Return the `Setting` of the table of costs; of this machine where `device` is None."""
        config, fixed = config_of(self.teacher), self.options.fixed_lengths
        return Setting(
            device=device or cost_measurement.this_device(),
            model_type=config.model_type,
            hidden_dim=config.hidden_dim,
            head_dim=config.key_dim,
            quantization=self.options.quantization,
            tokens=min((x for x in fixed if x >= self.tokens), default=self.tokens),
        )

    def read_costs(self, path):
        """Return the `CostTable` of a file, of any device.

        Raises:
            InputError: as `read_table`, and for a table of other models, files or texts, or of
                one number of parts where the space has others.
        """
        table = read_table(path)
        cost_measurement.check_setting(table, self.setting(), path)
        cost_measurement.check_covers(table, self.space, path)
        return table

    def check_budget(self, table):
        """Raise an InputError if no student is within the budget by a `CostTable`."""
        self._candidates(table).check()

    def _candidates(self, table):
        return Candidates(self.space, self.depth, self.budget, table.predict)

    def supernet_run(self, config):
        """Return the `RunFolder` of the supernet; raise an InputError if it holds another run."""
        decisive = dataclasses.asdict(self.space)
        del decisive["keep_tokens"]  # which the supernet has all of
        return self.start_run("supernet", decisive | {"epochs": config.epochs})

    def train_supernet(self, config):
        """Distil the supernet; return the model of its best epoch.

        Args:
            config: a `TrainingConfig`.
        """
        ordered = self.order()
        keras.utils.set_random_seed(config.seed)  # whatever was drawn before
        supernet, run = Supernet(self._load(ordered)), self.supernet_run(config)
        SupernetDistillation(
            self.task,
            supernet.model,
            self.tokenizer,
            data=self.data,
            config=config,
            run=run,
            teacher=self._teacher(),
            supernet=supernet,
            space=self.space,
        ).run_all()
        return self._load(run.best)

    def search(self, model, table, count, seed=0):
        """Return the `Tried` students within the budget, the best first.

        Args:
            model: from `train_supernet`.
            table: a `CostTable`.
            count: of students to try.
            seed: of the search.
        """
        scored_by = model_fingerprint(model), self.data.dev, self.task.monitor
        tried = self.folder / f"tried_{content_fingerprint(scored_by)[:8]}.jsonl"
        scorers = {}
        for tokens, (pruned, tokenizer) in self.with_tokens(model).items():
            dev = self.data.dev, self.data.max_length
            batches = encode_batches(self.task, tokenizer, *dev, batch_size=64)
            supernet = Supernet(pruned)
            scorers[tokens] = StudentScorer(supernet, self.task, self.data.dev, batches)

        def score(student):
            return scorers[student.vocabulary_size](student)[self.task.monitor]

        return search(self._candidates(table), score, tried, count, seed)

    def finish(self, model, student, config):
        """Distil a student to its end; return its folder, tokenizer and figures.

        Args:
            model: the supernet's.
            student: a `SubStudent` of the space.
            config: a `TrainingConfig`.
        """
        decisive = dataclasses.asdict(student) | {"epochs": config.epochs}
        name = f"{folder_name(student)}_{model_fingerprint(model)[:8]}"
        run = self.start_run(f"students/{name}", decisive)
        tokens, teacher = student.vocabulary_size, self._teacher()
        kept, tokenizer = self.vocabularies[tokens]
        if self.task.kind.by_token and kept is not None:
            pruned = self._prune(self.teacher, tokens)
            teacher = Teacher([pruned], tokenizer, self.task, unpruned=teacher)
        keras.utils.set_random_seed(config.seed)
        start = extract(self._prune(model, tokens), student)
        parts = {"data": self.data, "config": config, "run": run, "teacher": teacher}
        distillation = Distillation(self.task, start, tokenizer, **parts)
        distillation.save(self.folder / "starts" / name)
        return run.path, tokenizer, distillation.run_all()

    def export(self, folder, tokenizer):
        """Write a finished student's `model.tflite`; return its path and measured `Costs`."""
        path = folder / "model.tflite"
        model = self._load(folder / "best", "float32")
        settings = read_task_settings(folder / "best")
        export_tflite(
            model, path, tokenizer, self.task.label_names, self.options, task_settings=settings
        )
        figures = benchmark_file(path, (self.tokens,), (1,))
        (ms,) = figures["latency_ms"]["1"].values()
        return path, Costs(ms, figures["size_mb"])

    def _teacher(self):
        cache = str(self.folder / f"teacher_outputs_{self.made_of[:8]}")
        return Teacher([self.teacher], self.tokenizer, self.task, cache_dir=cache)


def default_tokens(config, size_mb, quantization):
    """Return the numbers of tokens of a teacher's config to try in a file, None for any size."""
    if size_mb is None:
        return [config.vocabulary_size]
    width = getattr(config, "embedding_dim", None) or config.hidden_dim  # narrow in ELECTRA
    row = QUANTIZATIONS[quantization].weight_bits / 8 * width  # bytes
    rooms = (share * size_mb * 1e6 / row for share in TABLE_SHARES)
    rounded = (max(100, round(int(room), -2)) for room in rooms)
    return [min(room, config.vocabulary_size) for room in rounded]


def _read_mark(path):
    """Return what a folder's files are made of; None if it is not noted."""
    return path.read_text("utf-8") if path.exists() else None


def folder_name(student):
    """Return the name of the folder of a student's run."""
    layers = "_".join(map(str, student.layers))
    sizes = student.num_heads, student.intermediate_dim, student.vocabulary_size
    return "layers_{}_heads_{}_units_{}_tokens_{}".format(layers, *sizes)
