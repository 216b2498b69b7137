"""verl agent loop that hands out the rollouts of an export file (algorithm.adv_estimator=turnpack).

VERL_USE_EXTERNAL_MODULES=turnpack_trainers.verl makes every process of verl import this module,
the trainer's among them, which looks the estimator up. turnpack_trainers.prompts writes data.train_files, and
verl_agent.yaml beside this file is the agent_loop_config_path.
"""
from __future__ import annotations

from typing import Any

import torch
from verl.experimental.agent_loop.agent_loop import AgentLoopBase, AgentLoopMetrics, AgentLoopOutput, register
from verl.trainer.ppo.core_algos import register_adv_est

from .files import Row, unlike
from .prompts import load, write_prompts  # noqa: F401


def output(row: Row) -> AgentLoopOutput:
    cut, versions = row["prompt_len"], [v for v in row["versions"] or () if v >= 0]
    extra = dict(reward_extra_info=dict(reward=float(row["reward"])), min_global_steps=min(versions, default=0), max_global_steps=max(versions, default=0))
    return AgentLoopOutput(prompt_ids=row["input_ids"][:cut], response_ids=row["input_ids"][cut:], response_mask=row["loss_mask"][cut:],
                           response_logprobs=row["logprobs"] and row["logprobs"][cut:], reward_score=float(row["advantage"]), num_turns=2,
                           metrics=AgentLoopMetrics(), extra_fields=extra)


@register("turnpack")
class ReplayLoop(AgentLoopBase):
    async def run(self, sampling_params: dict[str, Any], **row: Any) -> list[AgentLoopOutput]:
        rollouts = load(row["turnpack_file"])[row["turnpack_group"]]
        rows = rollouts[row["session_id"]]
        faults = unlike(rows, self.rollout_config["temperature"], "actor_rollout_ref.rollout.temperature")
        for part, longest in (("prompt", max(r["prompt_len"] for r in rows)), ("response", max(len(r["input_ids"]) - r["prompt_len"] for r in rows))):
            if longest > (most := self.rollout_config[f"{part}_length"]):
                faults.append(f"a {part} of {longest} tokens, and actor_rollout_ref.rollout.{part}_length is {most} (data.max_{part}_length)")
        if faults:
            raise ValueError(f"{row['turnpack_file']}: {'; '.join(faults)}")
        return [output(r) for r in rows]


@register_adv_est("turnpack")
def ready_advantages(token_level_rewards: torch.Tensor, response_mask: torch.Tensor, config: Any = None, **kwargs: Any) -> tuple[torch.Tensor, torch.Tensor]:
    if config is not None and config.get("use_kl_in_reward", False):
        raise ValueError("algorithm.use_kl_in_reward takes the KL of a rollout's tokens from its reward, which is the file's advantage here: leave it out (actor.use_kl_loss stands beside it)")
    spread = token_level_rewards.sum(dim=-1, keepdim=True) * response_mask
    return spread, spread

