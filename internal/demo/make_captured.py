"""Makes the captured sample dump and the tiny policy that sampled it.

    python3 internal/demo/make_captured.py

The policy learns the texts of make_dump.py and then works at four of its tasks,
four rollouts each, as an inference engine would run it: prompts grow by token
ids, and every sampled token keeps its id and log probability. It writes
examples/tutorial/model (weights in half precision) and
examples/tutorial/dumps. Another torch may learn other weights; dump and weights
always belong together.
"""
import json
import pathlib
import random
import shutil

import torch
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

import make_dump

ROOT = pathlib.Path(__file__).resolve().parents[2]
EMBEDDED, OUT = ROOT / "tokenize" / "embedded", ROOT / "examples" / "tutorial"
TASKS, ROLLOUTS, TURNS, LONGEST = make_dump.TASKS[:4], 4, 6, 160
UNITS, EPOCHS = 32, 24


def learn(tokenizer):
    """A policy that knows the sample conversations, a few roads better than others."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    random.seed(0)
    model = Qwen2ForCausalLM(Qwen2Config(
        vocab_size=4096, hidden_size=UNITS, intermediate_size=4 * UNITS, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        tie_word_embeddings=True, max_position_embeddings=4096, eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id, bos_token_id=None))
    kinds = ["quick", "quick", "careful", "careful", "recovers", "wrong"]
    texts = [tokenizer.apply_chat_template(make_dump.chat(t, 0, k)["messages"], return_dict=False) for t in TASKS for k in kinds]
    steps = EPOCHS * len(texts)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.0)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1e-2, total_steps=steps)
    for step in range(steps):
        if step % len(texts) == 0:
            random.shuffle(texts)
        ids = torch.tensor([texts[step % len(texts)]])
        loss = model(ids, labels=ids).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    print(f"loss {loss.item():.3f} after {steps} steps, {sum(p.numel() for p in model.parameters()):,} parameters")
    return model


class Repository:
    """What the commands of the sample tasks print."""

    def __init__(self, task):
        self.task, self.line, self.print = task, task["before"], task["fail"]

    def run(self, command):
        task = self.task
        if "pytest" in command:
            return "..\n2 passed" if self.line == task["after"] else f"F.\n{self.print}\n1 failed, 1 passed"
        if task["file"] not in command:
            return "No such file or directory"
        if command.startswith("sed"):
            return make_dump.source(task, self.line)
        for new, printed in ((task["after"], ""), (task["wrong"], task["wrong_fail"])):
            if repr(new) in command:
                self.line, self.print = new, printed
        return ""


@torch.no_grad()
def sample(model, prompt, stop):
    """Ids and log probabilities of one completion at temperature 1."""
    ids, logprobs = [], []
    out = model(torch.tensor([prompt]), use_cache=True)
    while True:
        logp = out.logits[0, -1].float().log_softmax(-1)
        ids.append(torch.multinomial(logp.exp(), 1).item())
        logprobs.append(round(logp[ids[-1]].item(), 6))
        if ids[-1] == stop or len(ids) == LONGEST:
            return ids, logprobs
        out = model(torch.tensor([[ids[-1]]]), past_key_values=out.past_key_values, use_cache=True)


def attempt(model, tokenizer, task, index):
    repository = Repository(task)
    messages = make_dump.chat(task, index, "quick")["messages"][:2]
    turns, seen, status, finish = [], [], "truncated", ""
    while len(turns) < TURNS and finish != "length":
        added = tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=False) if not turns else \
            tokenizer.encode(f"\n<|im_start|>user\n{messages[-1]['content']}<|im_end|>\n<|im_start|>assistant\n")
        prompt = seen + added
        ids, logprobs = sample(model, prompt, tokenizer.eos_token_id)
        finish = "stop" if ids[-1] == tokenizer.eos_token_id else "length"
        turns.append({"message": len(messages), "output_ids": ids, "logprobs": logprobs, "finish_reason": finish,
                      "prompt_ids": {"base": len(turns) - 1, "keep": len(seen), "add": added} if turns else prompt})
        seen = prompt + ids
        said = tokenizer.decode(ids[:-1] if finish == "stop" else ids)
        messages.append({"role": "assistant", "content": said, "sampled": "sampled"})
        command = said.partition("```bash\n")[2].partition("\n```")[0]
        if command == "echo SUBMIT":
            status = "completed"
            break
        if finish == "stop":
            messages.append({"role": "user", "content": f"<returncode>0</returncode>\n<output>\n{repository.run(command)}\n</output>"})
    if messages[-1]["role"] == "user":
        messages.pop()
    return {"turnpack_version": 1, "id": f"{task['key']}/{index}", "group": task["key"], "index": index, "instance": task["key"], "messages": messages,
            "turns": turns, "outcome": {"resolved": repository.line == task["after"] and status == "completed"}, "status": status, "temperature": 1.0}


def main():
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(EMBEDDED / "tokenizer.json"), eos_token="<|im_end|>", pad_token="<|endoftext|>",
                                        chat_template=(EMBEDDED / "chat_template.jinja").read_text())
    folder, dumps = OUT / "model", OUT / "dumps"
    dumps.mkdir(parents=True, exist_ok=True)
    learn(tokenizer).half().save_pretrained(folder)
    for name in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja"):
        shutil.copy(EMBEDDED / name, folder)
    model = Qwen2ForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    torch.manual_seed(1)
    with open(dumps / "captured.jsonl", "w") as f:
        for task in TASKS:
            rollouts = [attempt(model, tokenizer, task, i) for i in range(ROLLOUTS)]
            print(task["key"], [(r["outcome"]["resolved"], r["status"], len(r["turns"])) for r in rollouts])
            f.writelines(json.dumps(r, ensure_ascii=False) + "\n" for r in rollouts)


if __name__ == "__main__":
    main()
