"""SkyRL generator that hands out the rows of an export file: return it from BasePPOExp.get_generator."""
import pyarrow.parquet as pq
from skyrl.train.generators.base import GeneratorInterface, TrajectoryID


class ExportGenerator(GeneratorInterface):
    """Dataset items carry uid = group_id; repetition_id is the rollout_index."""

    def __init__(self, path):
        self.rollouts = {}
        for row in pq.read_table(path).to_pylist():
            self.rollouts.setdefault((row["group_id"], row["rollout_index"]), []).append(row)

    async def generate(self, input_batch):
        out = {k: [] for k in ("prompt_token_ids", "response_ids", "loss_masks", "rollout_logprobs", "rewards", "stop_reasons", "trajectory_ids", "is_last_step")}
        for asked in input_batch["trajectory_ids"]:
            for row in self.rollouts[asked.instance_id, asked.repetition_id]:
                cut = row["prompt_len"]
                out["prompt_token_ids"].append(row["input_ids"][:cut])
                out["response_ids"].append(row["input_ids"][cut:])
                out["loss_masks"].append(row["loss_mask"][cut:])
                out["rollout_logprobs"].append(row["logprobs"][cut:])
                out["rewards"].append(float(row["reward"]))
                out["stop_reasons"].append(row["finish_reason"])
                out["trajectory_ids"].append(TrajectoryID(asked.instance_id, asked.repetition_id))
                out["is_last_step"].append(bool(row["is_last"]))
        return {**out, "rollout_metrics": None, "trajectory_generation_times": None, "rollout_expert_indices": None}
