"""Trains SkyRL on an export file, with the file's advantages:

    TURNPACK_FILE=batch/batch.parquet python -m skyrl.train.entrypoints.main_base \
      trainer.override_entrypoint=turnpack_trainers.skyrl_main trainer.train_batch_size=GROUPS ...
"""
from __future__ import annotations

import logging
import os
import sys
from typing import Any

import ray
from skyrl.train.config import SkyRLTrainConfig
from skyrl.train.entrypoints.main_base import BasePPOExp
from skyrl.train.trainer import RayPPOTrainer
from skyrl.train.utils import validate_cfg
from skyrl.train.utils.utils import initialize_ray

from .files import Expected, Row, named_file, read_rows, unlike
from .skyrl import ExportGenerator, ExportPrompts

log = logging.getLogger("turnpack_trainers")


class FileAdvantagesTrainer(RayPPOTrainer):
    """Gives each token the advantage that the file has for it; RayPPOTrainer makes its own from the rewards."""

    def __init__(self, cfg: Any, *args: Any, **kwargs: Any) -> None:
        algorithm = cfg.trainer.algorithm
        for setting, on in {"generator.merge_stepwise_output": cfg.generator.merge_stepwise_output, "trainer.algorithm.dynamic_sampling.type": algorithm.dynamic_sampling.type,
                            "trainer.algorithm.use_kl_in_reward": algorithm.use_kl_in_reward, "trainer.algorithm.zero_variance_filter": algorithm.zero_variance_filter,
                            "trainer.algorithm.advantage_batch_normalize": getattr(algorithm, "advantage_batch_normalize", False)}.items():  # later releases have it
            if on:
                raise ValueError(f"{setting} makes other rows, rewards or advantages than the file has: leave it out")
        for setting in ("apply_overlong_filtering", "zero_reward_on_non_stop"):  # of SkyRL's own generator, so that they would do nothing
            if getattr(cfg.generator, setting, False):
                raise ValueError(f"generator.{setting} looks at replies as SkyRL samples them: leave it out, and convert with --overlong mask or --stop-properly")
        super().__init__(cfg, *args, **kwargs)

    def postprocess_generator_output(self, generator_output: Any, uids: list[str], *args: Any, **kwargs: Any) -> Any:
        generator_output, uids = super().postprocess_generator_output(generator_output, uids, *args, **kwargs)
        generator_output["rewards"] = generator_output.pop("file_advantages")  # per token, as the rewards are from here on
        return generator_output, uids

    def compute_advantages_and_returns(self, data: Any) -> Any:
        advantages = data["rewards"] * data["loss_mask"]
        data["advantages"], data["returns"] = advantages, advantages.clone()
        trained = advantages[data["loss_mask"] > 0]
        metrics = {"avg_final_rewards": self.all_metrics.get("reward/avg_raw_reward", 0.0), "avg_response_length": data.metadata["avg_response_length"],
                   "avg_advantages": trained.mean().item(), "avg_advantages_abs": trained.abs().mean().item()}
        data.metadata.setdefault("metrics", {}).update(metrics)
        self.all_metrics.update({"loss/avg_raw_advantages": metrics["avg_advantages"], "loss/avg_raw_advantages_abs": metrics["avg_advantages_abs"]})
        return data.to("cpu")


def fits(rows: list[Row], cfg: Any) -> None:
    """Refuses settings by which SkyRL would leave rows out, end far from here, or compare with another policy."""
    groups: dict[str, dict[str, int]] = {}
    for row in rows:
        rollouts = groups.setdefault(row["group_id"], {})
        rollouts[row["rollout_id"]] = rollouts.get(row["rollout_id"], 0) + 1
    faults = []
    size, most = cfg.trainer.train_batch_size, max(len(g) for g in groups.values())
    if len(groups) % size:
        faults.append(f"the file has {len(groups)} groups, of which trainer.train_batch_size={size} drops {len(groups) % size}: choose a divisor")
    if cfg.trainer.policy_mini_batch_size > size:
        faults.append(f"trainer.policy_mini_batch_size={cfg.trainer.policy_mini_batch_size} is more than trainer.train_batch_size={size}: set it to that, or to a divisor")
    if cfg.generator.n_samples_per_prompt != most:
        faults.append(f"the largest group has {most} rollouts: set generator.n_samples_per_prompt={most}")
    if not cfg.generator.step_wise_trajectories and (len(rows) != sum(map(len, groups.values())) or any(len(g) != most for g in groups.values())):
        faults.append("rollouts have several rows, or groups differ in size: set generator.step_wise_trajectories=true")
    for setting, at in (("generator.sampling_params.temperature", cfg.generator.sampling_params.temperature), ("trainer.algorithm.temperature", cfg.trainer.algorithm.temperature)):
        faults += unlike(rows, at, setting) if at is not None else []  # the second is the first, unless it is set
    if cfg.trainer.algorithm.policy_loss_type != "rollout_is" and all(row["logprobs"] for row in rows):
        log.warning("trainer.algorithm.policy_loss_type=%s: the log probabilities of the file are not used, the policy before the step is the old one", cfg.trainer.algorithm.policy_loss_type)
    if faults:
        raise ValueError("; ".join(faults))


class ReplayExp(BasePPOExp):
    """SkyRL's experiment over the rows of a file."""

    def __init__(self, cfg: Any, path: str, expected: Expected) -> None:
        self.path, self.expected = path, expected
        super().__init__(cfg)

    def get_train_dataset(self) -> ExportPrompts:
        fits(read_rows(self.path, self.expected), self.cfg)
        return ExportPrompts(self.path, self.expected)

    def get_eval_dataset(self) -> None:
        return None

    def get_generator(self, cfg: Any, tokenizer: Any, inference_engine_client: Any) -> ExportGenerator:
        return ExportGenerator(self.path, self.expected)

    def get_trainer(self, **parts: Any) -> FileAdvantagesTrainer:
        return FileAdvantagesTrainer(**parts)


@ray.remote(num_cpus=1)
def replay(cfg: Any, path: str, expected: Expected) -> None:
    ReplayExp(cfg, path, expected).run()


def settings(arguments: list[str]) -> tuple[Any, str]:
    """SkyRL's configuration and the file, which fit each other."""
    path = os.path.abspath(named_file())  # workers have other folders and environments
    cfg = SkyRLTrainConfig.from_cli_overrides([a for a in arguments if not a.startswith("trainer.override_entrypoint=")])
    fits(read_rows(path), cfg)
    if cfg.trainer.eval_interval > 0:
        log.warning("trainer.eval_interval: evaluation is left out, the generator has the rows of the file alone")
        cfg.trainer.eval_interval, cfg.trainer.eval_before_train = -1, False
    return cfg, path


def main() -> None:
    cfg, path = settings(sys.argv[1:])
    validate_cfg(cfg)
    initialize_ray(cfg)
    ray.get(replay.remote(cfg, path, Expected.from_environment()))
