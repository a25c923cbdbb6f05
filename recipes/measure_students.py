"""Measures the times of a teacher's parts on a phone, for find_student.

    python -m recipes.measure_students --teacher_dir=runs/teacher/best --train=train.tsv \\
        --dev=dev.tsv --fixed_lengths=32 --fixed_only --output_dir=runs/costs

writes .tflite files of some layers, heads, units and tokens of the teacher to OUTPUT_DIR/costs,
with their times on this machine in costs.tsv. Run each NAME.tflite on the phone, by LiteRT's
benchmark_model with --num_threads=1, and keep what it prints as NAME.txt (or benchmark.json of
recipes.benchmark_tflite as NAME.json). Then

    python -m recipes.measure_students ... --results=logs --device="Pixel 9"

writes the table of these times, to give find_student as --cost_table.
"""

from absl import flags

from recipes.flags import student_space_flags, training_flags

FLAGS = flags.FLAGS
student_space_flags.define_flags()
training_flags.define_folder_flags()
flags.DEFINE_integer("max_length", 128, "Longest input in tokens.", 3)
flags.DEFINE_integer("seed", 0, "Seed of the examples that tell what is important.", 0)
flags.DEFINE_string("results", None, "Folder of NAME.txt or NAME.json for each NAME.tflite.")
flags.DEFINE_string("device", None, "Name of the phone of --results.")
