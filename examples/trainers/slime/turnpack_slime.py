"""slime rollout function over export files: one file a training step.

--rollout-function-path turnpack_slime.generate_rollout
--custom-reward-post-process-path turnpack_slime.use_file_advantages
"""
import os

import pyarrow.parquet as pq
from slime.rollout.base_types import RolloutFnTrainOutput
from slime.utils.types import Sample


def to_sample(row, group, index, first):
    start = row["prompt_len"]
    logprobs = row["logprobs"]
    return Sample(
        group_index=group,
        index=index,
        rollout_id=first,  # siblings share the index of the rollout's first row
        tokens=row["input_ids"],
        response_length=len(row["input_ids"]) - start,
        loss_mask=row["loss_mask"][start:],
        rollout_log_probs=None if logprobs is None else logprobs[start:],
        reward=row["reward"],
        status=Sample.Status(row["status"]),
        metadata={"advantage": row["advantage"], "sample_id": row["sample_id"]},
    )


def generate_rollout(args, rollout_id, data_source, evaluation=False):
    path = os.environ["TURNPACK_FILE"].format(rollout_id=rollout_id)
    folder = os.path.dirname(path)
    if os.path.exists(os.path.join(folder, "progress.json")) and not os.path.exists(os.path.join(folder, "manifest.json")):
        raise RuntimeError(f"{folder} holds a set that is not complete: run the job that writes it again")
    groups, seen_group, seen_rollout, first = [], None, None, 0
    for index, row in enumerate(pq.read_table(path).to_pylist()):
        if row["group_id"] != seen_group:
            groups.append([])
            seen_group = row["group_id"]
        if row["rollout_id"] != seen_rollout:
            groups[-1].append([])
            seen_rollout, first = row["rollout_id"], index
        groups[-1][-1].append(to_sample(row, len(groups) - 1, index, first))
    return RolloutFnTrainOutput(samples=groups)  # depth 3 everywhere: group, rollout, row


def use_file_advantages(args, samples):
    return [s.reward for s in samples], [s.metadata["advantage"] for s in samples]
