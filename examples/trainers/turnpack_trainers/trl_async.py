"""TRL rollout worker that hands out the rows of export files: AsyncGRPOTrainer(rollout_worker=ReplayWorker(path), weight_transfer=NoWeightTransfer(), ...)."""
from __future__ import annotations

import os
import queue
from collections.abc import Iterable
from typing import Any

import numpy as np
from trl.experimental.async_grpo.async_rollout_worker import RolloutSample

from .files import advantages_of_rows, read_rows, with_logprobs


class ReplayWorker:
    """rollout_worker of AsyncGRPOTrainer: queues every row, and the last file twice, since the loader fetches ahead."""

    def __init__(self, *paths: str | os.PathLike[str]) -> None:
        self.paths = [*paths, paths[-1]]
        self.rollout_buffer: queue.Queue[Any] = queue.Queue()
        self.metrics_queue: queue.Queue[Any] = queue.Queue()
        self.version = 0

    def start(self) -> None:
        numbers: dict[str, int] = {}
        for row in (r for p in self.paths for r in advantages_of_rows(with_logprobs(read_rows(p)))):
            self.rollout_buffer.put(RolloutSample(
                prompt=[], completion=[], input_ids=np.asarray(row["input_ids"]), completion_mask=np.asarray(row["loss_mask"]),
                old_log_probs=np.asarray(row["logprobs"], np.float32), advantage=float(row["advantage"]), model_version=self.version,
                group_id=numbers.setdefault(row["group_id"], len(numbers)), metrics={"reward": float(row["reward"])}))

    def update_model_version(self, version: int) -> None:
        self.version = version

    def check_health(self, stale_after_s: float) -> None:
        if self.rollout_buffer.empty():
            raise RuntimeError("the export files are used up")

    def stop(self) -> None:
        pass


class NoWeightTransfer:
    """weight_transfer of AsyncGRPOTrainer where no server samples: weights go nowhere."""

    def init_weight_transfer(self) -> None:
        pass

    def pause(self) -> None:
        pass

    def send_weights(self, iterator: Iterable[Any]) -> None:
        for _ in iterator:  # it gathers sharded weights on every process
            pass

    def resume(self) -> None:
        pass

    def destroy(self) -> None:
        pass
