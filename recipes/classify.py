"""Classifies texts: the former name of `recipes.predict`, kept from when it only classified.

    python -m recipes.classify --model=runs/export/model.tflite --text="a fine film"
    python -m recipes.classify --model=runs/export/model.tflite --input=dev.tsv \\
        --output_dir=runs/answers

prints (or writes to OUTPUT_DIR/predictions.tsv) the label and its probability before each
text. Where the file has labels, the scores are printed too.
"""

from recipes import common
from recipes.predict import main

if __name__ == "__main__":
    common.run(main, tensorflow=False)
