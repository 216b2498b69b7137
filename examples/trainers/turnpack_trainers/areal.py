"""AReaL workflow over an export file: one episode is one rollout, `rewards` carry the file's advantages."""
from __future__ import annotations

import os
from typing import Any

import torch
from areal.api.workflow_api import RolloutWorkflow

from .files import Row, advantages_of_rows, read_rows

FIELDS: dict[str, tuple[float, torch.dtype]] = {"input_ids": (0, torch.int32), "loss_mask": (0, torch.int32), "logprobs": (0.0, torch.float32), "versions": (-1, torch.int32)}


def episodes(path: str | os.PathLike[str]) -> list[list[Row]]:
    """The dataset: a list with the rows of each rollout."""
    rollouts: dict[str, list[Row]] = {}
    for row in advantages_of_rows(read_rows(path)):
        rollouts.setdefault(row["rollout_id"], []).append(row)
    return list(rollouts.values())


class ReplayWorkflow(RolloutWorkflow):
    """Run with reward_norm and adv_norm off, discount = gae_lambda = 1, kl_ctl = 0, a large reward_clip.

    recomputed says that the actor computes the old policy's log probabilities (recompute_logprob, without
    use_decoupled_loss), which rows of text need: those that it would read for them are zeros.
    """

    def __init__(self, recomputed: bool = False) -> None:
        self.recomputed = recomputed

    async def arun_episode(self, engine: Any, rows: list[Row]) -> dict[str, torch.Tensor]:
        bare = [r["sample_id"] for r in rows if not r["logprobs"]]
        if bare and not self.recomputed:
            raise ValueError(f"row {bare[0]} has no log probabilities: train with actor.recompute_logprob=true and actor.use_decoupled_loss=false")
        lengths = [len(r["input_ids"]) for r in rows]  # rows end on a trained token: the reward sits there
        width = max(lengths)
        batch: dict[str, torch.Tensor] = {}
        for name, (fill, dtype) in FIELDS.items():
            batch[name] = torch.full((len(rows), width), fill, dtype=dtype)
            for i, row in enumerate(rows):
                if row[name] is not None:
                    batch[name][i, :lengths[i]] = torch.tensor(row[name], dtype=dtype)
        batch["attention_mask"] = torch.arange(width)[None, :] < torch.tensor(lengths)[:, None]
        batch["rewards"] = torch.tensor([r["advantage"] for r in rows], dtype=torch.float32)
        return batch
