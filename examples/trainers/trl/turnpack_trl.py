"""TRL rollout function that hands out the rollouts of an export file (one row each, equal groups)."""
import pyarrow.parquet as pq


class RolloutFunction:
    """rollout_func of GRPOTrainer; its prompts are group ids (see prompts), handed out num_generations times each."""

    def __init__(self, path):
        self.groups = {}
        for row in pq.read_table(path).to_pylist():
            self.groups.setdefault(row["group_id"], []).append(row)

    def prompts(self):
        return [{"prompt": g} for g in self.groups]

    def __call__(self, prompts, trainer):
        handed = {g: iter(rows) for g, rows in self.groups.items()}
        rows = [next(handed[g]) for g in prompts]
        part = lambda name, r: r[name][r["prompt_len"]:]
        return {"prompt_ids": [r["input_ids"][:r["prompt_len"]] for r in rows], "completion_ids": [part("input_ids", r) for r in rows],
                "logprobs": [part("logprobs", r) for r in rows], "env_mask": [part("loss_mask", r) for r in rows],
                "file_reward": [r["reward"] for r in rows]}


def file_reward(prompts, completions, file_reward, **kwargs):
    return file_reward
