#!/bin/bash
# A training by several processes under SLURM: sbatch docs/clusters/slurm.sh
#SBATCH --job-name=tfnlp
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-task=16
#SBATCH --time=24:00:00
# SIGTERM two minutes before the time is up: the run saves and stops.
#SBATCH --signal=TERM@120
# A job that a node's failure ended starts again, and goes on from the last state.
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=%x-%j.log

set -euo pipefail

# A folder that all nodes see.
RUN="${RUN:-$HOME/runs/tfnlp}"
PORT="${PORT:-12345}"

ADDRESSES=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | sed "s/.*/\"&:$PORT\"/" | paste -sd,)
export ADDRESSES

# One process dead, all are ended: none can go on without the others.
srun --kill-on-bad-exit=1 bash -c '
    export TF_CONFIG="{\"cluster\": {\"worker\": [$ADDRESSES]},
                       \"task\": {\"type\": \"worker\", \"index\": $SLURM_PROCID}}"
    exec "$@"
' worker python -m recipes.finetune_classifier --strategy=multi_worker \
    --model_dir="$HOME/models/MiniLM-L6" --train="$HOME/data/train.tsv" --dev="$HOME/data/dev.tsv" \
    --batch_size=512 --precision=mixed_bfloat16 --checkpoint_steps=500 --output_dir="$RUN"
