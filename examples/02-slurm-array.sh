#!/bin/bash
# One compare in as many parts as the array has tasks. Each part is a run folder of its own; a task that was killed goes on
# where it stopped when it is queued again (scontrol requeue, or the same command once more).
#
#   sbatch examples/02-slurm-array.sh model.gguf book.txt runs/mine
#   sbatch --array=1-32 examples/02-slurm-array.sh model.gguf book.txt runs/mine --windows 32
#   longhand merge runs/mine           once all are done: checks that the parts belong together, and joins them
#
# With servers that score, tasks need little: … runs/mine --endpoint none=http://a:8000,yarn:4=http://b:8000
#SBATCH --job-name=longhand
#SBATCH --array=1-8
#SBATCH --cpus-per-task=8
#SBATCH --mem=16G
#SBATCH --time=04:00:00
#SBATCH --requeue
set -euo pipefail
model=$1 text=$2 out=$3
exec longhand compare "$model" --text "$text" --target 4x --out "$out" \
  --shard "$SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_COUNT" --threads "${SLURM_CPUS_PER_TASK:-1}" "${@:4}"
