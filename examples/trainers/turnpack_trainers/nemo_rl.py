"""NeMo-RL on export files: its rollouts are the rows of a file for each step, its advantages the file's.

    TURNPACK_FILE='batch/data/step_{step}.parquet' python -m turnpack_trainers.nemo_rl examples/run_grpo.py --config ...
"""
from __future__ import annotations

import os
import runpy
import sys
from typing import Any

import torch
from nemo_rl.distributed.batched_data_dict import BatchedDataDict

from .files import Row, advantages_of_tokens, named_file, read_rows, unlike


def messages(row: Row) -> list[dict[str, Any]]:
    """The prompt as one user message, then a message for each run of equal mask."""
    ids, mask, start = torch.tensor(row["input_ids"]), row["loss_mask"], row["prompt_len"]
    log: list[dict[str, Any]] = [{"role": "user", "content": "", "token_ids": ids[:start]}]
    edges = [start, *(t for t in range(start + 1, len(mask)) if mask[t] != mask[t - 1]), len(mask)]
    for a, b in zip(edges, edges[1:]):
        message: dict[str, Any] = {"role": "assistant" if mask[a] else "environment", "content": "", "token_ids": ids[a:b]}
        if mask[a]:  # without them it takes the message for a part of the prompt; of text they are zeros, which settings that read them refuse
            message["generation_logprobs"] = torch.tensor(row["logprobs"][a:b], dtype=torch.float32) if row["logprobs"] else torch.zeros(b - a)
        log.append(message)
    return log


def batch(path: str | os.PathLike[str], multiple: int = 1, reading: list[str] | None = None, temperature: float | None = None) -> Any:
    """All rows, and copies of the last one that count for nothing up to a multiple of train_global_batch_size; reading
    names the settings that read log probabilities, under which rows of text are refused, temperature that of the policy."""
    rows = advantages_of_tokens(read_rows(path))
    if temperature is not None and (faults := unlike(rows, temperature, "policy.generation.temperature")):
        raise ValueError(f"{path}: {faults[0]}")
    bare = [r["sample_id"] for r in rows if not r["logprobs"]]
    if reading and bare:
        raise ValueError(f"{path}: row {bare[0]} has no log probabilities, and {', '.join(reading)} reads them: turn it off")
    real = len(rows)
    rows += rows[-1:] * (-real % multiple)

    def floats(values: list[float]) -> torch.Tensor:
        return torch.tensor(values, dtype=torch.float32)

    return BatchedDataDict({
        "message_log": [messages(r) for r in rows],
        "length": torch.tensor([r["prompt_len"] for r in rows]),
        "loss_multiplier": floats([1.0] * real + [0.0] * (len(rows) - real)),  # rows without a trained token are not in the file
        "total_reward": floats([r["reward"] for r in rows]),
        "truncated": torch.tensor([r["status"] == "truncated" for r in rows]),
        "token_advantages": torch.nn.utils.rnn.pad_sequence([floats(r["advantages"]) for r in rows], batch_first=True),
        "idx": list(range(len(rows))),
    })


class FileAdvantages:
    """An advantage estimator (compute_advantage, as GRPOAdvantageEstimator's) that gives each token the file's."""

    def compute_advantage(self, prompt_ids: Any, rewards: Any, mask: torch.Tensor, repeated_batch: Any, **kwargs: Any) -> torch.Tensor:
        values: torch.Tensor = repeated_batch["token_advantages"]
        out = torch.zeros(mask.shape, dtype=values.dtype)
        width = min(mask.shape[1], values.shape[1])  # one is padded to the longest row, the other perhaps beyond
        out[:, :width] = values[:, :width]
        return out.to(mask.device)


def fits(config: Any) -> None:
    """Refuses settings under which NeMo-RL would ask for its rollouts elsewhere, or leave rows out."""
    faults = [setting for setting, on in {
        "data_plane.enabled": (config.data_plane or {}).get("enabled", False),
        "grpo.async_grpo.enabled": config.grpo.async_grpo is not None and config.grpo.async_grpo.enabled,
        "env.should_use_nemo_gym": (config.env or {}).get("should_use_nemo_gym", False),
        "grpo.use_dynamic_sampling": config.grpo.use_dynamic_sampling,
        "grpo.val_period": config.grpo.val_period > 0,
        "grpo.val_at_start": config.grpo.val_at_start,
        "grpo.val_at_end": config.grpo.val_at_end,
    }.items() if on]
    changed = [setting for setting, on in {
        "grpo.overlong_filtering": config.grpo.overlong_filtering,
        "grpo.advantage_clip_low": config.grpo.advantage_clip_low is not None,
        "grpo.advantage_clip_high": config.grpo.advantage_clip_high is not None,
        "grpo.invalid_tool_call_advantage": config.grpo.invalid_tool_call_advantage is not None,
        "grpo.malformed_thinking_advantage": config.grpo.malformed_thinking_advantage is not None,
    }.items() if on]
    unread = [setting for setting, on in {
        "grpo.reward_scaling.enabled": config.grpo.reward_scaling.enabled,
        "grpo.reward_shaping.enabled": config.grpo.reward_shaping.enabled,
        "loss_fn.use_kl_in_reward": config.loss_fn.use_kl_in_reward,
    }.items() if on]
    if changed:
        raise ValueError(f"{', '.join(changed)}: takes rows out, or puts other advantages in the place of the file's: leave it out (convert has --advantage-clip and --overlong mask)")
    if unread:
        raise ValueError(f"{', '.join(unread)}: changes rewards, of which the file's advantages were made before: leave it out")
    if faults:
        raise ValueError(f"{', '.join(faults)}: rows of files are handed out by grpo_train alone, all of them, and are no validation: turn these off")


def reads_logprobs(config: Any) -> list[str]:
    """Settings under which NeMo-RL reads the log probabilities of the policy that sampled; its loss has those that it computes before the step."""
    return [setting for setting, on in {
        "loss_fn.use_importance_sampling_correction": config.loss_fn.use_importance_sampling_correction,
        "grpo.seq_logprob_error_threshold": config.grpo.seq_logprob_error_threshold is not None,
    }.items() if on]


def replay(path: str) -> None:
    """Call it before grpo_train: path names the file of each step, with {step} from 0.

    NeMo-RL's own baseline is by equal prompts of the batch that it asked for, whose rows are others; its estimator
    overwrites a batch's advantages.
    """
    from nemo_rl.algorithms import grpo
    step, multiple = 0, 1
    reading: list[str] = []
    temperature: float | None = None

    def create_estimator(config: Any) -> FileAdvantages:
        nonlocal multiple, reading, temperature
        fits(config)
        reading = reads_logprobs(config)
        multiple = config.policy["train_global_batch_size"]
        temperature = (config.policy.get("generation") or {}).get("temperature")  # it divides logits by it
        return FileAdvantages()

    def rollouts(*args: Any, **kwargs: Any) -> tuple[Any, dict[str, float]]:
        nonlocal step
        rows = batch(path.format(step=step), multiple, reading, temperature)
        step += 1
        trained = [sum(len(m["token_ids"]) for m in log if m["role"] == "assistant") for log in rows["message_log"]]
        return rows, {"mean_gen_tokens_per_sample": sum(trained) / len(trained)}

    def no_baseline(prompts: torch.Tensor, rewards: torch.Tensor, *args: Any, **kwargs: Any) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.zeros_like(rewards), torch.ones_like(rewards)

    grpo._create_advantage_estimator = create_estimator
    grpo.run_multi_turn_rollout = grpo.run_async_multi_turn_rollout = rollouts
    grpo.calculate_baseline_and_std_per_prompt = no_baseline


if __name__ == "__main__":
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    named_file(step=0)  # there is one
    replay(os.environ["TURNPACK_FILE"])
    sys.argv = sys.argv[1:]
    sys.path.insert(0, os.path.dirname(os.path.abspath(sys.argv[0])))
    runpy.run_path(sys.argv[0], run_name="__main__")
