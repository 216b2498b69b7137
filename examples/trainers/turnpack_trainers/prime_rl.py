"""Hands export rows to prime-rl's own packer and file sender (Go's export/primerl packs and writes the files without Python)."""
from __future__ import annotations

import asyncio
import os
import pathlib
from collections.abc import Iterator

from prime_rl.trainer.batch import build_bin_cost, prepare_batch
from prime_rl.transports.rollouts import FileSystemMicroBatchSender, TrainingSample

from .files import advantages_of_tokens, read_rows, with_logprobs


def training_samples(path: str | os.PathLike[str], env_name: str = "turnpack") -> Iterator[TrainingSample]:
    for row in advantages_of_tokens(with_logprobs(read_rows(path)), weights=True):
        tokens = row["input_ids"]
        yield TrainingSample(
            token_ids=tokens,
            mask=[bool(m) for m in row["loss_mask"]],  # 0/1 integers are refused
            logprobs=row["logprobs"],
            temperatures=[row["temperature"]] * len(tokens),  # also on context: logits are divided before the sampled token
            env_name=env_name,
            advantages=row["advantages"],
            rl_weights=row["weights"],
        )


def send_step(path: str | os.PathLike[str], output_dir: str | os.PathLike[str], step: int, seq_len: int, ranks: int, multiple: int = 1) -> None:
    batch = list(training_samples(path))
    longest = max(len(s.token_ids) for s in batch)
    if longest > seq_len:
        raise ValueError(f"a row of {longest} tokens would be cut at {seq_len}")
    grid = prepare_batch(batch, seq_len, ranks, build_bin_cost(None), multiple)
    asyncio.run(FileSystemMicroBatchSender(pathlib.Path(output_dir), ranks, step).send(grid))
