"""The files of docs/clusters.md are whole, and say what the recipes take."""

import os
import pathlib
import subprocess
import sys

import yaml

from tfnlp.training.step.worker_cluster import read_cluster

ROOT = pathlib.Path(__file__).parents[1]
CLUSTERS = ROOT / "docs" / "clusters"


def flags_of(words):
    return {word[2:].partition("=")[0] for word in words if word.startswith("--")}


def known_flags(recipe):
    code = f"import sys; from recipes import {recipe}; from absl import flags; print(*flags.FLAGS)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True
    )
    return set(done.stdout.split())


def test_the_kubernetes_job_runs_a_recipe():
    job = yaml.safe_load((CLUSTERS / "tfjob.yaml").read_text())
    assert (job["apiVersion"], job["kind"]) == ("kubeflow.org/v1", "TFJob")
    replicas = job["spec"]["tfReplicaSpecs"]
    assert replicas.keys() == {"Worker"} and replicas["Worker"]["replicas"] > 1
    pod = replicas["Worker"]["template"]["spec"]
    (container,) = pod["containers"]
    assert container["name"] == "tensorflow"
    python, m, recipe, *words = container["command"]
    assert (python, m) == ("python", "-m") and "--strategy=multi_worker" in words
    assert flags_of(words) <= known_flags(recipe.removeprefix("recipes."))
    mounts = {mount["name"] for mount in container["volumeMounts"]}
    assert mounts == {volume["name"] for volume in pod["volumes"]}


def test_the_slurm_script_gives_each_process_its_cluster(tmp_path):
    script = CLUSTERS / "slurm.sh"
    text = script.read_text()
    subprocess.run(["bash", "-n", script], check=True)
    assert text.startswith("#!/bin/bash\n") and "#SBATCH --nodes=" in text
    # What SLURM has, and the recipe, in their places: each process writes what it was given.
    for name, body in {
        "scontrol": "printf 'node1\\nnode2\\n'",
        "srun": 'shift; for i in 0 1; do SLURM_PROCID=$i "$@"; done',
        "python": 'echo $TF_CONFIG > "$SEEN/$SLURM_PROCID"; echo "$@" > "$SEEN/said"',
    }.items():
        (tmp_path / name).write_text(f"#!/bin/bash\n{body}\n")
        (tmp_path / name).chmod(0o755)
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "HOME": "/home/someone"}
    environment |= {"SEEN": str(tmp_path), "SLURM_JOB_NODELIST": "node[1-2]"}
    subprocess.run(["bash", script], check=True, env=environment)
    for index in (0, 1):
        cluster = read_cluster((tmp_path / str(index)).read_text())
        assert cluster.workers == ("node1:12345", "node2:12345") and cluster.index == index
    _, recipe, *words = (tmp_path / "said").read_text().split()
    assert "--output_dir=/home/someone/runs/tfnlp" in words
    assert flags_of(words) <= known_flags(recipe.removeprefix("recipes."))
