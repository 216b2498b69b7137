"""Trains AReaL on an export file, with the file's advantages:

    TURNPACK_FILE=batch/batch.parquet python -m turnpack_trainers.areal_main --config CONFIG.yaml gconfig.n_samples=1 ...
"""
from __future__ import annotations

import logging
import sys
from typing import Any

from .areal import episodes
from .files import Row, named_file, unlike

log = logging.getLogger("turnpack_trainers")


def fits(rollouts: list[list[Row]], config: Any) -> None:
    """Refuses settings by which AReaL would leave rollouts out, train on some twice, or make other advantages of them."""
    actor, faults = config.actor, []
    size = config.train_dataset.batch_size
    if len(rollouts) % size:
        faults.append(f"the file has {len(rollouts)} rollouts, of which train_dataset.batch_size={size} drops {len(rollouts) % size}: choose a divisor")
    if config.gconfig.n_samples != 1:
        faults.append("each rollout is handed out once: set gconfig.n_samples=1")
    highest = max(abs(r["advantage"]) for rows in rollouts for r in rows)
    wanted = {"reward_norm": None, "adv_norm": None, "reward_bias": 0.0, "reward_scaling": 1.0, "kl_ctl": 0.0, "discount": 1.0, "gae_lambda": 1.0,
              "mask_no_eos_with_zero": False, "overlong_reward_penalty": False, "use_decoupled_loss": False}
    for setting, value in wanted.items():
        if getattr(actor, setting) != value:
            faults.append(f"actor.{setting} makes other advantages than the file's: set it to {'null' if value is None else str(value).lower()}")
    if actor.reward_clip < highest:
        faults.append(f"the largest advantage is {highest:g}: set actor.reward_clip above it")
    if any(not r["logprobs"] for rows in rollouts for r in rows) and not actor.recompute_logprob:
        faults.append("the file has no log probabilities: set actor.recompute_logprob=true")
    faults += unlike([r for rows in rollouts for r in rows], actor.temperature, "actor.temperature (gconfig.temperature)")
    if actor.recompute_logprob and all(r["logprobs"] for rows in rollouts for r in rows):
        log.warning("actor.recompute_logprob: the log probabilities of the file are not used, the policy before the step is the old one")
    if faults:
        raise ValueError("; ".join(faults))


def settings(arguments: list[str]) -> tuple[Any, list[list[Row]]]:
    """AReaL's configuration and the rollouts of the file, which fit each other."""
    from areal.api.cli_args import GRPOConfig, load_expr_config
    config, _ = load_expr_config(arguments, GRPOConfig)
    rollouts = episodes(named_file())
    fits(rollouts, config)
    return config, rollouts


def main() -> None:
    from areal import PPOTrainer
    config, rollouts = settings(sys.argv[1:])
    with PPOTrainer(config, train_dataset=rollouts) as trainer:
        trainer.train(workflow="turnpack_trainers.areal.ReplayWorkflow", workflow_kwargs={"recomputed": bool(config.actor.recompute_logprob)})


if __name__ == "__main__":
    main()
