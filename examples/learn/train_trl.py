"""The trainer of train.py with the step of TRL: its GRPOTrainer, on the service's rows, advantages and log probabilities."""
import logging
import tempfile
import warnings

import torch
from datasets import Dataset
from transformers import PreTrainedTokenizerFast, PrinterCallback
from transformers.utils import logging as notes
from trl import GRPOConfig

import grpo
import train
from turnpack_trainers.trl import FileAdvantagesTrainer, RolloutFunction, file_reward

EPOCHS = 2


class Open(FileAdvantagesTrainer):
    """With a bonus for entropy, which GRPOTrainer has not: random weights fall silent without one."""

    entropy = 0.0

    def compute_loss(self, model, inputs, *args, **kwargs):
        loss = super().compute_loss(model, inputs, *args, **kwargs)
        ids = torch.cat([inputs["prompt_ids"], inputs["completion_ids"]], 1)
        seen = torch.cat([inputs["prompt_mask"], inputs["completion_mask"]], 1)
        n, mask = inputs["completion_ids"].shape[1], inputs["tool_mask"] * inputs["completion_mask"]
        spread = (model(input_ids=ids, attention_mask=seen, position_ids=(seen.cumsum(1) - 1).clamp(min=0)).logits[:, -n - 1:-1] / self.temperature).log_softmax(-1)
        return loss - self.entropy * (-(spread.exp() * spread).sum(-1) * mask).sum() / mask.sum()


class Run(train.Run):
    def update(self, rows, entropy):
        ids, mask, recorded = (grpo.pad(rows, c) for c in ("input_ids", "loss_mask", "logprobs"))
        with torch.no_grad():
            told = grpo.drift(grpo.logprobs(self.model, ids, rows[0]["temperature"]), recorded, mask)
        function = RolloutFunction(rows, fill=True)
        prompts = function.prompts()
        with tempfile.TemporaryDirectory() as out:
            config = GRPOConfig(output_dir=out, max_steps=EPOCHS, num_iterations=EPOCHS, per_device_train_batch_size=len(prompts) * function.size, num_generations=function.size,
                                steps_per_generation=1, max_completion_length=256, temperature=rows[0]["temperature"], beta=0.0, loss_type="dapo", epsilon=0.2, epsilon_high=0.28,
                                max_grad_norm=1.0, learning_rate=self.optimizer.param_groups[0]["lr"], lr_scheduler_type="constant", shuffle_dataset=False, use_cpu=True, bf16=False,
                                gradient_checkpointing=False, save_strategy="no", logging_steps=1, report_to="none", disable_tqdm=True, disable_dropout=True)
            trainer = Open(model=self.model, args=config, reward_funcs=file_reward, train_dataset=Dataset.from_list(prompts), rollout_func=function,
                                            processing_class=PreTrainedTokenizerFast.from_pretrained(self.tokenizer), optimizers=(self.optimizer, torch.optim.lr_scheduler.LambdaLR(self.optimizer, lambda _: 1.0)))
            trainer.entropy = entropy
            trainer.remove_callback(PrinterCallback)
            trainer.train()
        step = next(log for log in trainer.state.log_history if "grad_norm" in log)
        return told | {"loss": float(step["loss"]), "norm": float(step["grad_norm"])}


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    notes.set_verbosity_error()
    notes.disable_progress_bar()
    logging.disable(logging.WARNING)
    train.main(Run)
