"""SkyRL's dataset and generator over an export file; skyrl_main trains on them with the file's advantages."""
from __future__ import annotations

from collections import Counter
from typing import Any

from skyrl.train.generators.base import GeneratorInterface, TrajectoryID

from .files import Expected, Row, advantages_of_tokens, read_rows

Item = tuple[list[dict[str, str]], None, dict[str, Any], str]


class ExportPrompts:
    """Return it from BasePPOExp.get_train_dataset: an item a group, with the group's id as the uid that ExportGenerator
    looks up. SkyRL's PromptDataset numbers its items instead."""

    def __init__(self, path: str, expected: Expected | None = None) -> None:
        self.uids = list(dict.fromkeys(row["group_id"] for row in read_rows(path, expected)))

    def __len__(self) -> int:
        return len(self.uids)

    def __getitem__(self, item: int) -> Item:
        return [{"role": "user", "content": self.uids[item]}], None, {}, self.uids[item]

    def collate_fn(self, items: list[Item]) -> list[dict[str, Any]]:
        return [{"prompt": prompt, "env_class": env, "env_extras": extras, "uid": uid} for prompt, env, extras, uid in items]


class ExportGenerator(GeneratorInterface):
    """Dataset items carry uid = group_id; repetition n is the n-th rollout of the group that has rows, in file order.

    Repetitions beyond those are left out of the batch, which SkyRL takes with step_wise_trajectories alone.
    """

    def __init__(self, path: str, expected: Expected | None = None) -> None:
        groups: dict[str, dict[str, list[Row]]] = {}
        for row in advantages_of_tokens(read_rows(path, expected)):
            groups.setdefault(row["group_id"], {}).setdefault(row["rollout_id"], []).append(row)
        self.groups = {group: list(rollouts.values()) for group, rollouts in groups.items()}

    def check(self, asked: list[Any]) -> None:
        """A prompt without rows, or a rollout that nobody asks for, would be missing in silence or fail far from here."""
        for group, n in Counter(a.instance_id for a in asked).items():
            there = len(self.groups.get(group, ()))
            if there == 0:
                raise KeyError(f"the export file has no rows of group {group!r}: take uids from its group_id column")
            if there > n:
                raise ValueError(f"group {group!r} has {there} rollouts and {n} are asked for: set generator.n_samples_per_prompt to the largest group")

    async def generate(self, input_batch: Any) -> dict[str, Any]:
        self.check(input_batch["trajectory_ids"])
        names = ("prompt_token_ids", "response_ids", "loss_masks", "rollout_logprobs", "rewards", "stop_reasons", "trajectory_ids", "is_last_step", "file_advantages")
        out: dict[str, Any] = {name: [] for name in names}
        for asked in input_batch["trajectory_ids"]:
            for rows in self.groups[asked.instance_id][asked.repetition_id:][:1]:
                for row in rows:
                    cut = row["prompt_len"]
                    out["prompt_token_ids"].append(row["input_ids"][:cut])
                    out["response_ids"].append(row["input_ids"][cut:])
                    out["loss_masks"].append(row["loss_mask"][cut:])
                    out["rollout_logprobs"].append(row["logprobs"] and row["logprobs"][cut:])
                    out["rewards"].append(float(row["reward"]))
                    out["stop_reasons"].append(row["finish_reason"])
                    out["trajectory_ids"].append(TrajectoryID(asked.instance_id, asked.repetition_id))
                    out["is_last_step"].append(bool(row["is_last"]))
                    out["file_advantages"].append(row["advantages"][cut:])
        if None in out["rollout_logprobs"]:  # text: SkyRL computes those of the policy before the step
            out["rollout_logprobs"] = None
        return {**out, "rollout_metrics": None, "trajectory_generation_times": None, "rollout_expert_indices": None}
