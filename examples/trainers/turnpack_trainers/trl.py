"""TRL rollout function that hands out the rollouts of an export file (one row each, equal groups), and a command that trains on them."""
from __future__ import annotations

import argparse
import os
from collections import Counter
from typing import Any

import torch
from trl import GRPOTrainer  # type: ignore[attr-defined,unused-ignore]

from .files import Row, advantages_of_tokens, read_rows, unlike


class RolloutFunction:
    """rollout_func of GRPOTrainer; its prompts are group ids (see prompts), handed out num_generations times each.

    It takes a file, or rows as turnpack_trainers.live gives them. With fill, groups that lack rollouts are filled up to the
    largest with rows that train nothing, and rollouts may have several rows: the advantages have to be those of the file.
    """

    def __init__(self, source: str | os.PathLike[str] | list[Row], fill: bool = False) -> None:
        self.groups: dict[str, list[Row]] = {}
        for row in advantages_of_tokens(source if isinstance(source, list) else read_rows(source)):
            self.groups.setdefault(row["group_id"], []).append(row)
        self.size = max(map(len, self.groups.values()), default=0)
        for group in self.groups.values() if fill else ():
            group += [_untrained(group[0])] * (self.size - len(group))

    def prompts(self) -> list[dict[str, str]]:
        return [{"prompt": g} for g in self.groups]

    def __call__(self, prompts: list[str], trainer: Any) -> dict[str, Any]:
        for group, asked in Counter(prompts).items():
            if asked != len(self.groups[group]):  # a rollout would be left out or, where processes share a group, be there twice
                raise ValueError(f"group {group!r} has {len(self.groups[group])} rollouts and {asked} are asked for: set num_generations to the rollouts of a group, "
                                 "and per_device_train_batch_size * steps_per_generation to a multiple of it")
        of = [row for group in dict.fromkeys(prompts) for row in self.groups[group]]
        at: float | None = getattr(trainer, "temperature", None)
        if at is not None and (faults := unlike(of, at, "temperature")):
            raise ValueError(faults[0])
        handed = {g: iter(rows) for g, rows in self.groups.items()}
        rows = [next(handed[g]) for g in prompts]

        def part(name: str, r: Row) -> list[Any]:
            return list(r[name][r["prompt_len"]:])

        return {"prompt_ids": [r["input_ids"][:r["prompt_len"]] for r in rows], "completion_ids": [part("input_ids", r) for r in rows],
                "logprobs": [part("logprobs", r) for r in rows] if all(r["logprobs"] for r in rows) else None, "env_mask": [part("loss_mask", r) for r in rows],
                "file_reward": [r["reward"] for r in rows], "file_advantages": [part("advantages", r) for r in rows]}


def _untrained(row: Row) -> Row:
    """A row of one token after its prompt, which trains nothing."""
    n = row["prompt_len"] + 1
    return row | {"input_ids": row["input_ids"][:n], "loss_mask": [0] * n, "logprobs": [0.0] * n, "advantages": [0.0] * n}


def file_reward(prompts: Any, completions: Any, file_reward: list[float], **kwargs: Any) -> list[float]:
    return file_reward


class FileAdvantagesTrainer(GRPOTrainer):
    """Trains on the file's advantages and log probabilities; GRPOTrainer itself makes advantages from the rewards and takes its own as the old policy's.

    Rows of text have no log probabilities: the policy before the step is the old one then, as in GRPOTrainer.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.mask_truncated_completions:
            raise ValueError("mask_truncated_completions takes rollouts out that do not end on TRL's own stop token: leave it out (convert has --overlong mask)")

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        batch = super()._generate_and_score_completions(inputs)
        advantages = torch.zeros_like(batch["completion_ids"], dtype=torch.float32)
        for row, sample in zip(advantages, inputs):
            row[:len(sample["file_advantages"])] = torch.tensor(sample["file_advantages"])
        old = {"old_per_token_logps": batch["sampling_per_token_logps"]} if "sampling_per_token_logps" in batch else {}
        return {**batch, "advantages": advantages, **old}


def main() -> None:
    """python -m turnpack_trainers.trl --file FILE --model MODEL [arguments of GRPOConfig]"""
    from datasets import Dataset
    from trl import GRPOConfig, TrlParser  # type: ignore[attr-defined,unused-ignore]
    given = argparse.ArgumentParser(description=main.__doc__, add_help=False)
    given.add_argument("--file", required=True)
    given.add_argument("--model", required=True)
    own, rest = given.parse_known_args()
    function = RolloutFunction(own.file)
    rows = [row for group in function.groups.values() for row in group]
    sizes = sorted({len(group) for group in function.groups.values()})
    if len(sizes) > 1 or sizes[0] < 2:
        raise ValueError(f"{own.file}: groups have {', '.join(map(str, sizes))} rows, and TRL takes groups of one size, 2 or more: convert --target trl --group-size N leaves the others out")
    size = sizes[0]
    temperatures = {row["temperature"] for row in rows}
    if len(temperatures) > 1:
        raise ValueError(f"{own.file}: rows were sampled at {sorted(temperatures)}, and TRL has one temperature (convert --target trl refuses such rows)")
    # The file's facts, before the arguments given, which win.
    facts = ["--num_generations", size, "--per_device_train_batch_size", size, "--temperature", temperatures.pop(), "--beta", 0, "--shuffle_dataset", False,
             "--max_completion_length", max(len(row["input_ids"]) for row in rows)]
    (config,) = TrlParser((GRPOConfig,)).parse_args_and_config([str(a) for a in facts] + rest)
    trainer = FileAdvantagesTrainer(model=own.model, args=config, reward_funcs=file_reward, train_dataset=Dataset.from_list(function.prompts()), rollout_func=function)
    trainer.train()
    trainer.save_model()


if __name__ == "__main__":
    main()
