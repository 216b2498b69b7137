"""NeMo-RL batch from an export file, as a replacement of the rollout call returns it."""
import os

import pyarrow.parquet as pq
import torch
from nemo_rl.distributed.batched_data_dict import BatchedDataDict


def whole(path):
    """path, unless it belongs to a set whose writer has not ended or was killed."""
    folder = os.path.dirname(path)
    if os.path.exists(os.path.join(folder, "progress.json")) and not os.path.exists(os.path.join(folder, "manifest.json")):
        raise RuntimeError(f"{folder} holds a set that is not complete: run the job that writes it again")
    return path


def messages(row):
    """The prompt as one user message, then a message for each run of equal mask."""
    ids, mask, start = torch.tensor(row["input_ids"]), row["loss_mask"], row["prompt_len"]
    log = [{"role": "user", "content": "", "token_ids": ids[:start]}]
    edges = [start, *(t for t in range(start + 1, len(mask)) if mask[t] != mask[t - 1]), len(mask)]
    for a, b in zip(edges, edges[1:]):
        message = {"role": "assistant" if mask[a] else "environment", "content": "", "token_ids": ids[a:b]}
        if mask[a]:
            message["generation_logprobs"] = torch.tensor(row["logprobs"][a:b], dtype=torch.float32)
        log.append(message)
    return log


def batch(path):
    rows = pq.read_table(whole(path)).to_pylist()
    floats = lambda values: torch.tensor(list(values), dtype=torch.float32)
    return BatchedDataDict({
        "message_log": [messages(r) for r in rows],
        "length": torch.tensor([r["prompt_len"] for r in rows]),
        "loss_multiplier": torch.ones(len(rows)),  # rows without a trained token are not in the file
        "total_reward": floats(r["reward"] for r in rows),
        "truncated": torch.tensor([r["status"] == "truncated" for r in rows]),
        "advantage": floats(r["advantage"] for r in rows),
        "idx": list(range(len(rows))),
    })
