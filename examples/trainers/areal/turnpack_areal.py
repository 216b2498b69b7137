"""AReaL workflow over an export file: one episode is one rollout, `rewards` carry the file's advantages."""
import os

import pyarrow.parquet as pq
import torch
from areal.api.workflow_api import RolloutWorkflow

FIELDS = {"input_ids": (0, torch.int32), "loss_mask": (0, torch.int32), "logprobs": (0.0, torch.float32), "versions": (-1, torch.int32)}


def whole(path):
    """path, unless it belongs to a set whose writer has not ended or was killed."""
    folder = os.path.dirname(path)
    if os.path.exists(os.path.join(folder, "progress.json")) and not os.path.exists(os.path.join(folder, "manifest.json")):
        raise RuntimeError(f"{folder} holds a set that is not complete: run the job that writes it again")
    return path


def episodes(path):
    """The dataset: a list with the rows of each rollout."""
    rollouts = {}
    for row in pq.read_table(whole(path)).to_pylist():
        rollouts.setdefault(row["rollout_id"], []).append(row)
    return list(rollouts.values())


class ReplayWorkflow(RolloutWorkflow):
    """Run with reward_norm and adv_norm off, discount = gae_lambda = 1, kl_ctl = 0, a large reward_clip."""

    async def arun_episode(self, engine, rows):
        lengths = [len(r["input_ids"]) for r in rows]  # rows end on a trained token: the reward sits there
        width = max(lengths)
        batch = {}
        for name, (fill, dtype) in FIELDS.items():
            batch[name] = torch.full((len(rows), width), fill, dtype=dtype)
            for i, row in enumerate(rows):
                batch[name][i, :lengths[i]] = torch.tensor(row[name], dtype=dtype)
        batch["attention_mask"] = torch.arange(width)[None, :] < torch.tensor(lengths)[:, None]
        batch["rewards"] = torch.tensor([r["advantage"] for r in rows], dtype=torch.float32)
        return batch
