"""A trainer for the loop: batches of the service in, weights to the engine out.

It reads a JSON object a line: {"run": …} begins a run or goes on with one, {"until": SEQ} asks for a step on the batches
up to SEQ. It answers each with a line. A batch that it cannot train on rightly ends it, with the reason.
"""
import json
import pathlib
import sys
import time

import torch
from transformers import AutoConfig, AutoModelForCausalLM

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "trainers"))
import grpo  # noqa: E402
from state import State, Torn  # noqa: E402
from turnpack_trainers import live  # noqa: E402
from turnpack_trainers.files import Expected  # noqa: E402


def tell(**what):
    print(json.dumps(what), flush=True)


class Run:
    def __init__(self, model, folder, engine, service, seed, steps=60, lr=2e-3, entropy=0.2, recompute=False):
        torch.set_num_threads(1)
        torch.manual_seed(seed)
        self.model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(model))  # a random start
        self.model.model.norm.weight.data.fill_(0.5)  # near uniform, so that each token is tried
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=lr, weight_decay=0.0, betas=(0.9, 0.95))
        self.tokenizer, self.engine, self.service, self.recompute = model, engine, service, recompute
        self.steps, self.lr, self.entropy = steps, lr, entropy
        self.state = State(folder)
        resumed = self.state.load(self.model, self.optimizer)
        if not resumed:
            self.state.save(self.model, self.optimizer, seq=0, first=True)
        self.state.publish(engine, service)
        tell(version=self.state.version, seq=self.state.seq, resumed=resumed, parameters=sum(p.numel() for p in self.model.parameters()))

    def step(self, until):
        """Trains on the batches up to until, unless the checkpoint has them already."""
        if self.state.seq < until:
            begun = time.process_time()
            # Tokens of another vocabulary or of an older policy are refused here, before the step.
            expected = Expected(tokenizer=self.tokenizer, min_version=self.state.version)
            rows = live.take(self.service, self.state.seq, until, expected=expected)
            rows.sort(key=lambda r: r["sample_id"])
            tell(begun=until, rows=len(rows))
            done = self.state.version / self.steps  # of the run: the bonus goes first, then the learning rate
            for group in self.optimizer.param_groups:
                group["lr"] = self.lr * min(1.0, max(0.1, 3 * (1 - done)))
            told = self.update(rows, self.entropy * max(0.0, 1 - done / 0.7))
            self.state.save(self.model, self.optimizer, until)
            self.state.publish(self.engine, self.service)
            told |= {"rows": len(rows), "tokens": sum(len(r["input_ids"]) for r in rows), "trained": sum(sum(r["loss_mask"]) for r in rows), "seconds": time.process_time() - begun}
        else:
            told = {"already": True}  # it was killed after the checkpoint and before it could say so
        live.acknowledge(self.service, self.state.seq)
        tell(version=self.state.version, seq=self.state.seq, **told)

    def update(self, rows, entropy):
        return grpo.step(self.model, self.optimizer, rows, entropy=entropy, recompute=self.recompute)


def main(kind=Run):
    run = None
    tell(ready=True)
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            if "run" in asked:
                run = kind(**asked["run"])
            else:
                run.step(asked["until"])
        except (Torn, ValueError, RuntimeError, FloatingPointError) as e:
            tell(refused=f"{e}")
            sys.exit(3)


if __name__ == "__main__":
    main()
