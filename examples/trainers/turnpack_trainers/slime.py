"""slime rollout function over export files: one file a training step.

--rollout-function-path turnpack_trainers.slime.generate_rollout
--custom-reward-post-process-path turnpack_trainers.slime.use_file_advantages
"""
from __future__ import annotations

import logging
from typing import Any

from slime.rollout.base_types import RolloutFnTrainOutput
from slime.utils.types import Sample

from .files import Row, advantages_of_rows, named_file, read_rows, step_scores, unlike

log = logging.getLogger("turnpack_trainers")


def to_sample(row: Row, group: int, index: int, first: int) -> Sample:
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
        metadata={"advantage": row["advantage"], "sample_id": row["sample_id"], **step_wise(row)},
    )


def step_wise(row: Row) -> dict[str, Any]:
    """What --advantage-estimator step_wise of OpenClaw-RL reads of a sample: scores and spans of its steps."""
    steps, start = step_scores(row), row["prompt_len"]
    if not steps:
        return {}
    return {"step_wise": {
        "step_indices": [s["step"] for s in steps],
        "step_token_spans": [[s["from"] - start, s["to"] - start] for s in steps],
        "step_scores": [s["score"] for s in steps],
        "step_scores_with_outcome": [s["value"] for s in steps],
        "step_advantages": [s["advantage"] for s in steps],
        "outcome_reward": row["outcome_reward"],
    }}


def filler(group: int, index: int, logprobs: bool) -> Sample:
    """A rollout that trains nothing, as slime's coding agent leaves for an aborted one."""
    return Sample(group_index=group, index=index, rollout_id=index, tokens=[0, 0], response_length=1, loss_mask=[0], rollout_log_probs=[0.0] if logprobs else None,
                  reward=0.0, remove_sample=True, status=Sample.Status.ABORTED, metadata={"advantage": 0.0})


def generate_rollout(args: Any, rollout_id: int, data_source: Any, evaluation: bool = False) -> RolloutFnTrainOutput:
    path = named_file(rollout_id=rollout_id)
    rows = advantages_of_rows(read_rows(path))
    if faults := unlike(rows, getattr(args, "rollout_temperature", 1.0), "--rollout-temperature"):
        raise ValueError(f"{path}: {faults[0]}")
    groups: list[list[list[Sample]]] = []
    seen_group = seen_rollout = None
    first = rollouts = 0
    for index, row in enumerate(rows):
        if row["group_id"] != seen_group:
            groups.append([])
            seen_group = row["group_id"]
        if row["rollout_id"] != seen_rollout:
            groups[-1].append([])
            seen_rollout, first, rollouts = row["rollout_id"], index, rollouts + 1
        groups[-1][-1].append(to_sample(row, len(groups) - 1, index, first))
    # slime ends on fewer rollouts than its batch, and drops those beyond a multiple of it.
    missing = -rollouts % args.global_batch_size
    if missing:
        log.warning("%s: %d rollouts, filled up with %d that train nothing to a multiple of --global-batch-size %d", path, rollouts, missing, args.global_batch_size)
        groups.append([[filler(len(groups), len(rows) + i, rows[0]["logprobs"] is not None)] for i in range(missing)])
    return RolloutFnTrainOutput(samples=groups)  # depth 3 everywhere: group, rollout, row


def use_file_advantages(args: Any, samples: list[Sample]) -> tuple[list[float], list[float]]:
    """The rewards, and in the place of what slime makes of them the file's advantages, which its estimators of groups take as they are."""
    estimator = getattr(args, "advantage_estimator", "grpo")
    replaced = {f"--advantage-estimator {estimator}": estimator in ("ppo", "reinforce_plus_plus", "reinforce_plus_plus_baseline"),
                "--normalize-advantages": getattr(args, "normalize_advantages", False), "--custom-advantage-function-path": getattr(args, "custom_advantage_function_path", None),
                "--use-opd": getattr(args, "use_opd", False)}
    if estimator != "step_wise":
        for s in samples:
            if any(a != s.metadata["advantage"] for a in s.metadata.get("step_wise", {}).get("step_advantages", ())):
                raise ValueError(f"the steps of sample {s.metadata['sample_id']} have advantages of their own, which OpenClaw-RL alone reads (--advantage-estimator step_wise)")
    if faults := [flag for flag, on in replaced.items() if on]:
        raise ValueError(f"{', '.join(faults)} puts other advantages in the place of the file's: leave it out")
    return [s.reward for s in samples], [s.metadata["advantage"] for s in samples]
