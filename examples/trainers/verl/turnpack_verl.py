"""verl agent loop that hands out the rollouts of an export file (algorithm.adv_estimator=turnpack)."""
import functools
import os

import pyarrow as pa
import pyarrow.parquet as pq
from verl.experimental.agent_loop.agent_loop import AgentLoopBase, AgentLoopMetrics, AgentLoopOutput, register
from verl.trainer.ppo.core_algos import register_adv_est


def whole(path):
    """path, unless it belongs to a set whose writer has not ended or was killed."""
    folder = os.path.dirname(path)
    if os.path.exists(os.path.join(folder, "progress.json")) and not os.path.exists(os.path.join(folder, "manifest.json")):
        raise RuntimeError(f"{folder} holds a set that is not complete: run the job that writes it again")
    return path


@functools.lru_cache(maxsize=2)
def load(path):
    """{group_id: [[row, ...] per rollout]}, file order; `--target verl` has left aborted rollouts out."""
    groups = {}
    for row in pq.read_table(whole(path)).to_pylist():
        rollouts = groups.setdefault(row["group_id"], {})
        rollouts.setdefault(row["rollout_id"], []).append(row)
    return {g: list(r.values()) for g, r in groups.items()}


def write_prompts(export_file, prompt_file):
    """One light row per group: verl copies every column into every row it queues."""
    table = [dict(prompt=[dict(role="user", content=g)], agent_name="turnpack", data_source="turnpack", __rollout_n__=len(r),
                  turnpack_file=export_file, turnpack_group=g) for g, r in load(export_file).items()]
    pq.write_table(pa.Table.from_pylist(table), prompt_file)


def output(row):
    cut, versions = row["prompt_len"], [v for v in row["versions"] or () if v >= 0]
    extra = dict(reward_extra_info=dict(reward=float(row["reward"])), min_global_steps=min(versions, default=0), max_global_steps=max(versions, default=0))
    return AgentLoopOutput(prompt_ids=row["input_ids"][:cut], response_ids=row["input_ids"][cut:], response_mask=row["loss_mask"][cut:],
                           response_logprobs=row["logprobs"][cut:], reward_score=float(row["advantage"]), num_turns=2,
                           metrics=AgentLoopMetrics(), extra_fields=extra)


@register("turnpack")
class ReplayLoop(AgentLoopBase):
    async def run(self, sampling_params, **row):
        rollouts = load(row["turnpack_file"])[row["turnpack_group"]]
        return [output(r) for r in rollouts[row["session_id"]]]


@register_adv_est("turnpack")
def ready_advantages(token_level_rewards, response_mask, **kwargs):
    spread = token_level_rewards.sum(dim=-1, keepdim=True) * response_mask
    return spread, spread
