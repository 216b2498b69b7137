"""NeMo-RL batch from an export file, as a replacement of the rollout call returns it."""
import torch
from nemo_rl.distributed.batched_data_dict import BatchedDataDict

from .files import read_rows


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


def batch(path, multiple=1):
    """All rows, and copies of the last one that count for nothing up to a multiple of train_global_batch_size."""
    rows = read_rows(path)
    real = len(rows)
    rows += rows[-1:] * (-real % multiple)
    floats = lambda values: torch.tensor(list(values), dtype=torch.float32)
    return BatchedDataDict({
        "message_log": [messages(r) for r in rows],
        "length": torch.tensor([r["prompt_len"] for r in rows]),
        "loss_multiplier": torch.tensor([1.0] * real + [0.0] * (len(rows) - real)),  # rows without a trained token are not in the file
        "total_reward": floats(r["reward"] for r in rows),
        "truncated": torch.tensor([r["status"] == "truncated" for r in rows]),
        "advantage": floats(r["advantage"] for r in rows),
        "idx": list(range(len(rows))),
    })


class FileAdvantages:
    """An advantage estimator (compute_advantage, as GRPOAdvantageEstimator's) that gives each row the file's."""

    def compute_advantage(self, prompt_ids, rewards, mask, repeated_batch, **kwargs):
        return repeated_batch["advantage"].to(mask.device).unsqueeze(-1).expand(mask.shape)


def use_file_advantages():
    """Call it before grpo_train: NeMo-RL overwrites the batch's advantages by an estimator whose groups are equal prompts."""
    from nemo_rl.algorithms import grpo
    grpo._create_advantage_estimator = lambda master_config: FileAdvantages()
