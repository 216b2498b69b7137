"""One CPU optimizer step of TRL on an export file (target trl, ids below 500), against a gradient computed here:
of GRPOTrainer, whose advantages are its own, and of FileAdvantagesTrainer, which takes the file's.

usage: train_trl.py FILE
"""
import copy
import pathlib
import sys
import tempfile

import torch
from datasets import Dataset
from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM
from trl import GRPOConfig, GRPOTrainer

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "examples" / "trainers"))
from turnpack_trainers.trl import FileAdvantagesTrainer, RolloutFunction, file_reward  # noqa: E402

LR = 0.5


def own_advantages(rows, size):
    """By group with ddof 1 and eps 1e-4, one for each token."""
    for at in range(0, len(rows), size):
        rewards = torch.tensor([r["reward"] for r in rows[at:at + size]])
        for row, a in zip(rows[at:at + size], (rewards - rewards.mean()) / (rewards.std() + 1e-4)):
            yield a * torch.tensor(row["loss_mask"], dtype=torch.float32)


def expected_gradient(model, rows, advantages, temperature, ratio):
    """Token mean of -advantage x log probability, times the ratio to the recorded policy where that is the old one."""
    total = sum(sum(r["loss_mask"]) for r in rows)
    for row, a in zip(rows, advantages):
        ids = torch.tensor([row["input_ids"]])
        logp = (model(ids).logits[0, :-1] / temperature).log_softmax(-1).gather(1, ids[0, 1:, None])[:, 0]
        if ratio:
            r, a = (logp - torch.tensor(row["logprobs"][1:])).exp(), a[1:]
            loss = -torch.min(r * a, r.clamp(0.8, 1.2) * a)
        else:
            loss = -a[1:] * logp
        mask = torch.tensor(row["loss_mask"][1:], dtype=torch.float32)
        ((loss * mask).sum() / total).backward()


def step(trainer_class, function, rows, size):
    """The relative error of one step of the trainer."""
    torch.manual_seed(0)
    own = trainer_class is GRPOTrainer
    temperature = rows[0]["temperature"]
    model = Qwen2ForCausalLM(Qwen2Config(vocab_size=512, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2))
    reference = copy.deepcopy(model)
    vocab = {f"t{i}": i for i in range(512)}
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.WordLevel(vocab, unk_token="t0")), pad_token="t510", eos_token="t511", unk_token="t0")
    with tempfile.TemporaryDirectory() as out:
        config = GRPOConfig(output_dir=out, per_device_train_batch_size=len(rows), num_generations=size, max_steps=1, learning_rate=LR, lr_scheduler_type="constant",
                            beta=0.0, loss_type="dapo", temperature=temperature, max_grad_norm=1e9, shuffle_dataset=False, use_cpu=True, bf16=False, report_to="none",
                            max_completion_length=4096, gradient_checkpointing=False, save_strategy="no", logging_steps=1)
        trainer = trainer_class(model=model, args=config, reward_funcs=file_reward, train_dataset=Dataset.from_list(function.prompts()), processing_class=tokenizer,
                                rollout_func=function, optimizers=(torch.optim.SGD(model.parameters(), lr=LR), None))
        trainer.train()
    advantages = own_advantages(rows, size) if own else (torch.tensor(r["advantages"]) for r in rows)
    expected_gradient(reference, rows, advantages, temperature, ratio=not own)
    worst = 0.0
    moved = 0.0
    for (name, p), q in zip(model.named_parameters(), reference.parameters()):
        want = -LR * q.grad
        got = p.detach() - q.detach()
        moved += got.norm().item()
        worst = max(worst, ((got - want).norm() / (want.norm() + 1e-8)).item())
    assert moved > 0, "the step moved nothing"
    assert worst < 1e-2, f"{trainer_class.__name__}: the weight change differs from the independent gradient by {worst:.2e}"
    return worst


def main(path):
    function = RolloutFunction(path)
    rows = [r for g in function.groups.values() for r in g]
    size = len(rows) // len(function.groups)
    for asked in (size - 1, size + 1):
        try:
            raise SystemExit(f"{asked} of {size} rollouts were handed out: {function([rows[0]['group_id']] * asked, None)}")
        except ValueError:
            pass
    errors = [step(c, function, rows, size) for c in (GRPOTrainer, FileAdvantagesTrainer)]
    print(f"{len(rows)} rollouts, {sum(sum(r['loss_mask']) for r in rows)} trained tokens: weight changes equal the independent gradients, relative errors {errors[0]:.1e} and {errors[1]:.1e}")


if __name__ == "__main__":
    main(sys.argv[1])
