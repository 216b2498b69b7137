"""TRL rollout worker that hands out the rows of export files: AsyncGRPOTrainer(rollout_worker=ReplayWorker(path), weight_transfer=NoWeightTransfer(), ...)."""
import queue

import numpy as np
from trl.experimental.async_grpo.async_rollout_worker import RolloutSample

from .files import read_rows


class ReplayWorker:
    """rollout_worker of AsyncGRPOTrainer: queues every row, and the last file twice, since the loader fetches ahead."""

    def __init__(self, *paths):
        self.paths = [*paths, paths[-1]]
        self.rollout_buffer, self.metrics_queue, self.version = queue.Queue(), queue.Queue(), 0

    def start(self):
        numbers = {}
        for row in (r for p in self.paths for r in read_rows(p)):
            self.rollout_buffer.put(RolloutSample(
                prompt=[], completion=[], input_ids=np.asarray(row["input_ids"]), completion_mask=np.asarray(row["loss_mask"]),
                old_log_probs=np.asarray(row["logprobs"], np.float32), advantage=float(row["advantage"]), model_version=self.version,
                group_id=numbers.setdefault(row["group_id"], len(numbers)), metrics={"reward": float(row["reward"])}))

    def update_model_version(self, version):
        self.version = version

    def check_health(self, stale_after_s):
        if self.rollout_buffer.empty():
            raise RuntimeError("the export files are used up")

    def stop(self):
        pass


class NoWeightTransfer:
    """weight_transfer of AsyncGRPOTrainer where no server samples: weights go nowhere."""

    def init_weight_transfer(self):
        pass

    def pause(self):
        pass

    def send_weights(self, iterator):
        for _ in iterator:  # it gathers sharded weights on every process
            pass

    def resume(self):
        pass

    def destroy(self):
        pass
