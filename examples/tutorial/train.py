"""One GRPO step of TRL on a batch of turnpack (target trl), on the CPU.

    python examples/tutorial/train.py batch/batch.parquet examples/tutorial/model
"""
import pathlib
import sys
import tempfile

import torch
from datasets import Dataset
from transformers import AutoModelForCausalLM, AutoTokenizer, PrinterCallback
from trl import GRPOConfig, GRPOTrainer

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "trainers"))
from turnpack_trainers.trl import RolloutFunction, file_reward  # noqa: E402


@torch.no_grad()
def drift(model, rows):
    """Largest difference between the recorded log probabilities and the model's own."""
    worst = 0.0
    for row in rows:
        ids = torch.tensor([row["input_ids"]])
        logp = (model(ids).logits[0, :-1] / row["temperature"]).log_softmax(-1).gather(1, ids[0, 1:, None])[:, 0]
        off = (logp - torch.tensor(row["logprobs"][1:])).abs() * torch.tensor(row["loss_mask"][1:])
        worst = max(worst, off.max().item())
    return worst


@torch.no_grad()
def objective(model, rows):
    """Mean of advantage x log probability over the trained tokens: a step should raise it."""
    total = 0.0
    for row in rows:
        ids = torch.tensor([row["input_ids"]])
        logp = model(ids).logits[0, :-1].log_softmax(-1).gather(1, ids[0, 1:, None])[:, 0]
        total += (logp * torch.tensor(row["advantages"][1:])).sum().item()
    return total / sum(sum(r["loss_mask"]) for r in rows)


def main(batch, folder):
    torch.manual_seed(0)
    model, tokenizer = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32), AutoTokenizer.from_pretrained(folder)
    function = RolloutFunction(batch)
    rows = [row for group in function.groups.values() for row in group]
    print(f"{len(rows)} rollouts in {len(function.groups)} groups, {sum(sum(r['loss_mask']) for r in rows)} trained tokens")
    print(f"recorded log probabilities differ from the model's by at most {drift(model, rows):.0e}")
    before = objective(model, rows)
    with tempfile.TemporaryDirectory() as out:
        config = GRPOConfig(output_dir=out, max_steps=1, per_device_train_batch_size=len(rows), num_generations=len(rows) // len(function.groups), learning_rate=1e-3,
                            lr_scheduler_type="constant", beta=0.0, temperature=rows[0]["temperature"], shuffle_dataset=False, max_completion_length=4096,
                            use_cpu=True, bf16=False, gradient_checkpointing=False, save_strategy="no", logging_steps=1, report_to="none", disable_tqdm=True)
        trainer = GRPOTrainer(model=model, args=config, reward_funcs=file_reward, train_dataset=Dataset.from_list(function.prompts()), processing_class=tokenizer, rollout_func=function)
        trainer.remove_callback(PrinterCallback)
        trainer.train()
    step = next(log for log in trainer.state.log_history if "grad_norm" in log)
    print(f"loss {float(step['loss']):.4f}, gradient norm {float(step['grad_norm']):.4f}, mean reward {float(step['reward']):.4f}")
    print(f"advantage x log probability: {before:.4f} before the step, {objective(model, rows):.4f} after it")


if __name__ == "__main__":
    main(*sys.argv[1:])
