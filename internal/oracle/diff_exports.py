"""Writes random batches for every target and reads them back without turnpack.

usage: diff_exports.py TURNPACK MODEL COUNT [SEED]

MODEL is the folder of examples/tutorial. The dumps hold token ids, log probabilities
and policy versions, so that which rows they give, and every value in them, follows
from the words of docs/format.md and of the trainers' recipes alone: rows, masks,
alignment, rewards and advantages, weights, statuses, order, steps and padding.
Rollouts break off, fail, have no result, lack columns, share groups unevenly and
are masked by length; groups come interleaved. Targets whose trainers have one
temperature refuse rows of several.
"""
import json
import math
import pickle
import random
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import msgspec
import pyarrow.parquet as pq

TURNPACK, MODEL, COUNT = sys.argv[1], sys.argv[2], int(sys.argv[3])
rand = random.Random(int(sys.argv[4]) if len(sys.argv) > 4 else 1)
VOCABULARY, EOS = 4000, 4089
SEVERAL = ("none", "prime-rl", "megatron")  # which take rows of several temperatures
LOGPROBS = ("prime-rl", "trl-async")  # whose loaders need them


def ids(least, most):
    return [rand.randrange(VOCABULARY) for _ in range(rand.randint(least, most))]


def rollout(group, index, prompt, lacks, temperatures):
    """A line of the dump, with its rows: a turn goes on from the one before or has a new context."""
    turns, rows, context = [], [], list(prompt)
    for step in range(rand.randint(1, 5)):
        if step and rand.random() < 0.35:
            context = prompt + ids(3, 9)
        if not step or context[:len(rows[-1]["ids"])] != rows[-1]["ids"]:
            rows.append({"ids": [], "mask": [], "logprobs": [], "versions": [], "prompt": len(context), "steps": []})
        stop = rand.random() < 0.85
        reply = ids(1, 7) + [EOS] * stop
        turn = {"prompt_ids": list(context), "output_ids": reply, "logprobs": [-round(rand.random() * 3, 4) for _ in reply], "version": rand.randint(0, 3),
                "finish_reason": "stop" if stop else "length", "step": step}
        row, gap = rows[-1], len(context) - len(rows[-1]["ids"])
        row["ids"] = context + reply
        row["mask"] += [0] * gap + [1] * len(reply)
        row["logprobs"] += [0] * gap + turn["logprobs"]
        row["versions"] += [-1] * gap + [turn["version"]] * len(reply)
        row["steps"].append(step)
        row["finish"] = turn["finish_reason"]
        for column in lacks:
            if rand.random() < 0.05:
                del turn[column]
        turns.append(turn)
        context = row["ids"] + ids(1, 6)
    line = {"turnpack_version": 1, "id": f"{group}/{index}", "group": group, "index": index, "messages": [{"role": "user", "content": "x"}], "turns": turns,
            "outcome": {"resolved": rand.random() < 0.5} if rand.random() < 0.9 else {},
            "steps": [{"step": s, "score": round(rand.uniform(-1, 1), 3)} for s in range(len(turns)) if rand.random() < 0.4]}
    status = rand.choices(["completed", "truncated", "aborted", "failed", None], [8, 3, 1, 1, 1])[0]
    line |= {"status": status} if status else {}
    temperature = rand.choice(temperatures)
    line |= {"temperature": temperature} if temperature else {}
    return line, rows


def dump():
    lacks = rand.choice([(), (), (), ("logprobs",), ("version",), ("logprobs", "version")])
    temperatures = rand.choice([(0.7,), (0.8,), (None,), (1.0, None), (0.7, 0.8, None)])
    made = []
    for g in range(rand.randint(1, 5)):
        group, prompt = rand.choice(["g%d", "grüppe %d", "组/%d", 'g#"%d']) % g, ids(1, 9)
        made += [rollout(group, i, prompt, lacks, temperatures) for i in range(rand.randint(1, 5))]
    if rand.random() < 0.4:
        rand.shuffle(made)
    return made


def mean(values):
    return math.fsum(values) / len(values)


def advantage(rewards, reward):
    """GRPO as docs/estimators.md has it: deviation by n - 1, 1e-6 added, groups without spread 0."""
    if len(rewards) < 2 or max(rewards) - min(rewards) <= 1e-6:
        return 0.0
    return (reward - mean(rewards)) / (math.sqrt(math.fsum((r - mean(rewards)) ** 2 for r in rewards) / (len(rewards) - 1)) + 1e-6)


class Case:
    def __init__(self):
        self.dump = dump()
        self.target = rand.choice(["none", "slime", "slime --pt", "verl", "skyrl", "prime-rl", "trl-async", "areal", "nemo-rl", "megatron"])
        self.name = self.target.split()[0]
        self.packed = self.name in ("prime-rl", "megatron")
        self.flags = {"unknown-status": rand.choice(["completed", "truncated", "aborted", "failed"]), "step-coef": rand.choice([0, 0, 0.5]),
                      "max-tokens": rand.choice([0, 0, 15, 30]), "groups-per-step": rand.choice([0, 0, 1, 2]),
                      "weights": rand.choice(["none", "rollout-mean"]) if self.name != "megatron" else "none", "policy-version": rand.choice([-1, 4])}
        if self.packed:
            self.flags |= {"seq-len": 128, "pad-multiple": rand.choice([1, 16])}
        if self.name == "prime-rl":
            self.flags["ranks"] = rand.randint(1, 3)

    def command(self, folder):
        flags = [f"--{k}={v}" for k, v in self.flags.items()]
        return [TURNPACK, "convert", "--model", MODEL, "--in", str(folder / "in.jsonl"), "--out", str(folder / "out"), "--quiet", "--target", *self.target.split(), *flags]

    def rollouts(self):
        """By group, those that have a reward and rows left by the mask."""
        groups = {}
        for line, rows in self.dump:
            groups.setdefault(line["group"], []).append((line, rows))
        for group in groups.values():
            scored = []
            for index, (line, rows) in enumerate(group):
                scores = [s["score"] for s in line["steps"]]
                cut = line["turns"][-1]["finish_reason"] == "length"  # a limit ended the last reply
                status = line.get("status", "truncated" if cut else self.flags["unknown-status"])
                if status in ("aborted", "failed") or not line["outcome"]:
                    continue
                outcome = 1.0 if line["outcome"]["resolved"] else -1.0
                scored.append((line, rows, index, status, outcome, outcome + (self.flags["step-coef"] * mean(scores) if scores else 0)))
            rewards = [s[-1] for s in scored]
            kept = []
            for line, rows, index, status, outcome, reward in scored:
                rows = [r for r in rows if not self.flags["max-tokens"] or len(r["ids"]) <= self.flags["max-tokens"]]
                if rows:
                    kept.append({"line": line, "rows": rows, "index": index, "status": status, "outcome": outcome, "reward": reward, "advantage": advantage(rewards, reward),
                                 "trained": sum(sum(r["mask"]) for r in rows)})
            if scored:
                yield scored, kept

    def columns(self, scored):
        turns = [t for line, *_ in scored for t in line["turns"]]
        return all("logprobs" in t for t in turns), self.flags["policy-version"] >= 0 or all("version" in t for t in turns)

    def steps(self):
        """The rows of each training step, as the row schema has them; None where the target refuses."""
        groups = list(self.rollouts())
        logprobs, versions = self.columns([s for scored, _ in groups for s in scored])
        groups = [kept for _, kept in groups if kept]
        if not groups or self.flags["step-coef"] and not any(line["steps"] for line, _ in self.dump):
            return None
        if self.name in LOGPROBS and not logprobs or self.name == "areal" and not versions:
            return None
        if self.name not in SEVERAL and len({r["line"].get("temperature", 1.0) for g in groups for r in g}) > 1:
            return None
        size = self.flags["groups-per-step"] or len(groups)
        return [list(self.rows([r for g in groups[at:at + size] for r in g], logprobs, versions)) for at in range(0, len(groups), size)]

    def rows(self, rollouts, logprobs, versions):
        trained = sum(r["trained"] for r in rollouts)
        for r in rollouts:
            line, last = r["line"], len(r["rows"]) - 1
            weight = trained / (len(rollouts) * r["trained"]) if self.flags["weights"] == "rollout-mean" else 1
            weighs = self.name in ("none", "prime-rl")
            factor = 1 if weighs or self.name == "slime" else weight
            for k, row in enumerate(r["rows"]):
                scores = [s["score"] for s in line["steps"] if s["step"] in row["steps"]]
                status = "completed" if self.name == "slime" and r["status"] == "truncated" and k < last else r["status"]
                finish = "length" if self.name == "skyrl" and r["status"] == "truncated" and k == last else row["finish"]
                version = [v if not m or "version" in line["turns"][t] else self.flags["policy-version"] for v, m, t in zip(row["versions"], row["mask"], owners(row, line))]
                yield {"sample_id": f"{line['id']}#{k}", "group_id": line["group"], "rollout_id": line["id"], "rollout_index": r["index"], "sample_index": k, "is_last": k == last,
                       "step_first": row["steps"][0], "step_last": row["steps"][-1], "prompt_len": row["prompt"], "input_ids": row["ids"], "loss_mask": row["mask"],
                       "logprobs": row["logprobs"] if logprobs else None, "versions": version if versions else None,
                       "weights": [weight * m for m in row["mask"]] if weighs and self.flags["weights"] != "none" else None,
                       "advantages": [r["advantage"] * factor * m for m in row["mask"]], "advantage": r["advantage"] * factor, "reward": r["reward"], "outcome_reward": r["outcome"],
                       "step_reward": mean(scores) if scores else None, "status": status, "finish_reason": finish, "mask_reason": None, "rollout_mask_sum": r["trained"],
                       "temperature": line.get("temperature", 1.0)}


def owners(row, line):
    """The turn of each token of a row; context tokens have any."""
    owner = [0] * len(row["ids"])
    for step in row["steps"]:
        turn = line["turns"][step]
        for k in range(len(turn["output_ids"])):
            owner[len(turn["prompt_ids"]) + k] = step
    return owner


def same(want, got):
    if isinstance(want, list):
        return isinstance(got, list) and len(want) == len(got) and all(map(same, want, got))
    if isinstance(want, dict):
        return all(k in got and same(v, got[k]) for k, v in want.items())
    if isinstance(want, float) or isinstance(got, float):
        return want is not None and got is not None and math.isclose(want, got, rel_tol=3e-6, abs_tol=1e-7)
    return want == got


def parquet(case, out, step, want):
    got = pq.read_table(out / (f"step_{step}.parquet" if case.flags["groups-per-step"] else "batch.parquet")).to_pylist()
    return same(want, got)


def slime_pt(case, out, step, want):
    data = pickle.loads(zipfile.ZipFile(out / f"{step}.pt").read("archive/data.pkl"))
    groups, first, samples = [], 0, []
    for n, row in enumerate(want):
        if row["group_id"] not in groups:
            groups.append(row["group_id"])
        first = first if row["sample_index"] else n
        cut = row["prompt_len"]
        samples.append({"group_index": len(groups) - 1, "index": n, "rollout_id": first, "prompt": "", "response": "", "tokens": row["input_ids"], "response_length": len(row["input_ids"]) - cut,
                        "loss_mask": row["loss_mask"][cut:], "rollout_log_probs": row["logprobs"] and row["logprobs"][cut:], "reward": row["reward"], "status": row["status"],
                        "remove_sample": False, "metadata": {"advantage": row["advantage"], "sample_id": row["sample_id"], "group_id": row["group_id"]}})
    return same({"rollout_id": step, "samples": samples}, data)


def rank_files(case, out, step, want):
    """Every row once, in micro-batches of sequences; pads of id 1 end the last one; fillers train nothing."""
    ranks = [msgspec.msgpack.decode((out / f"rollouts/step_{step + 1}/rank_{r}.bin").read_bytes()) for r in range(case.flags["ranks"])]
    if len({len(r) for r in ranks}) != 1:
        return False
    left = sorted(want, key=lambda r: r["sample_id"])
    for batch in (b for r in ranks for b in r):
        per_token, lengths, nothing = batch[:5] + batch[6:8], batch[5], batch[9:13] + batch[14:]
        size = len(batch[0])
        if len(batch) != 16 or any(len(c) != size for c in per_token) or lengths != batch[8] or sum(lengths) != size or any(n is not None for n in nothing):
            return False
        if size > case.flags["seq-len"] or size % case.flags["pad-multiple"]:
            return False
        if not any(batch[1]):  # a filler
            if any(batch[2]) or batch[13] is not None:
                return False
            continue
        at = 0
        for n in lengths:
            columns = [c[at:at + n] for c in per_token] + ([batch[13][at:at + n]] if batch[13] else [])
            row = next((r for r in left if same(sequence(r, n, bool(batch[13])), columns)), None)
            if row is None:
                return False
            left.remove(row)
            at += n
    return not left


def sequence(row, n, weighted):
    size = len(row["input_ids"])
    pads = n - size
    if pads < 0:
        return []
    weights = row["weights"] or row["loss_mask"]
    return [row["input_ids"] + [1] * pads, [bool(m) for m in row["loss_mask"]] + [False] * pads, row["advantages"] + [0.0] * pads, row["logprobs"] + [0.0] * pads,
            [*range(size), *range(pads)], [row["temperature"]] * size + [1.0] * pads, ["turnpack"] * size + [""] * pads] + ([weights + [0.0] * pads] if weighted else [])


def packs(case, out, step, want):
    """Every row is a segment, its mask shifted to labels, padded with eos."""
    multiple, got, sizes, most, least = case.flags["pad-multiple"], {}, [], 0, math.inf
    for pack in pq.read_table(out / f"train-{step:05d}.idx.parquet").to_pylist():
        bounds = pack["seq_start_id"] + [len(pack["input_ids"])]
        here = [b - a - 1 for a, b in zip(bounds, bounds[1:])]
        if bounds[0] or sum(here) > case.flags["seq-len"] or len(pack["sample_ids"]) != len(here):
            return False
        for name, a, b in zip(pack["sample_ids"], bounds, bounds[1:]):
            got[name] = (pack["input_ids"][a:b], pack["loss_mask"][a:b])
        sizes, most, least = sizes + here, max(most, len(here)), min(least, sum(here))
    segments = {}
    for row in want:
        pads = -(len(row["input_ids"]) - 1) % multiple
        segments[row["sample_id"]] = (row["input_ids"] + [EOS] * pads, row["loss_mask"][1:] + [0] * (pads + 1))
    about = json.loads((out / f"train-{step:05d}.metadata.json").read_text())
    return got == segments and about == [{"max_samples_per_bin": most, "dataset_max_seqlen": max(sizes), "min_packed_seqlen": least}]


READERS = {"slime --pt": slime_pt, "prime-rl": rank_files, "megatron": packs}


def agrees(case, folder):
    (folder / "in.jsonl").write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line, _ in case.dump), encoding="utf-8")
    p = subprocess.run(case.command(folder), capture_output=True, text=True)
    want = case.steps()
    if want is None or p.returncode:
        return want is None and p.returncode == 1, p.stderr
    read = READERS.get(case.target, parquet)
    out = folder / "out" / "data"  # of a set that a manifest lists
    out = out if out.exists() else folder / "out"
    return all(read(case, out, step, rows) for step, rows in enumerate(want)), ""


def main():
    bad = refused = 0
    for n in range(COUNT):
        case = Case()
        with tempfile.TemporaryDirectory() as tmp:
            right, said = agrees(case, Path(tmp))
            refused += bool(said)
            if not right:
                bad += 1
                print(f"batch {n}:", *case.command(Path(tmp))[2:], said[:300])
    print(f"{COUNT} batches ({refused} refused), {bad} differ")
    sys.exit(bad > 0)


main()
