"""Random rollouts through plumb merge, judged by the lineage kit's own checker.

usage: python diff_lineage.py PLUMB KIT CASES SEED

KIT holds check.py. Each rollout is a run of some agents that share a harness with faults of
random rates: retries, branches, subagents, duplicate and empty calls, one-token turns,
respelled or cut history, stripped thinking, compaction, windows, changing headers, stop
tokens that the engine keeps or strips, prefilled replies, scrambled records. Every policy
must keep the checker's rules; DriftFork must reach the proven optimum of rows, and DriftRealign
that of rows and, among those, of dropped tokens, by the kit's definition of expect.realign.
"""
import json, random, subprocess, sys, tempfile

plumb, kit, cases, seed = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
sys.path.insert(0, kit)
import check

WORD, OPEN, STOP, LINE, THINK = 10000, 1, 2, 3, 9
SYSTEM, USER, TOOL, REPLY = 5, 6, 7, 8
FAULTS = "drift earlier retry sub branch compact window header think strip empty twice same limit cut bare prefill one begun silent undo".split()
BUDGETS = 1, 8, 64
RUNS = [("exact", ["--drift", "fork"]), ("repair", ["--drift", "splice"]), ("repair", ["--drift", "auto"]), *(("repair", ["--drift", "realign", "--max-drop-tokens", str(d)]) for d in BUDGETS),
        ("repair", ["--drift", "auto", "--max-drop-tokens", "64", "--max-sub-tokens", "4"]), ("repair", ["--drift", "auto", "--allow-erase", "--max-drop-tokens", "1000"])]


class Rollout:
    def __init__(self, r, turns, size):
        self.r, self.turns, self.size, self.sampled = r, [], size, 0
        self.glm = r.random() < .3
        self.rate = {f: r.random() ** 2 if r.random() < .4 else 0 for f in FAULTS}
        self.respelled = r.choice([1, 1, 2, 4, 16])
        self.agents = [self.agent()]
        while len(self.turns) < turns:
            self.step(self.harness(r.choice(self.agents + self.agents[-1:] * 2)))
        if r.random() < .25:
            r.shuffle(self.turns)

    def now(self, fault, share=1.0):
        return self.r.random() < self.rate[fault] * share

    def words(self, n):
        return [WORD + 3 * self.r.randrange(4000) for _ in range(n)]

    def some(self):
        return self.words(self.r.randrange(1, self.size + 1))

    def agent(self):
        return [[SYSTEM, self.words(self.r.randrange(self.size))], [USER, self.some()]]

    def respell(self, ids, n):
        """The same text with up to n whole words in their two halves."""
        whole = [k for k, t in enumerate(ids) if t >= WORD and (t - WORD) % 3 == 0]
        self.r.shuffle(whole)
        split = set(whole[:n])
        return [x for k, t in enumerate(ids) for x in ((t + 1, t + 2) if k in split else (t,))]

    def render(self, blocks, strip=False):
        out = []
        for role, ids in blocks:
            if strip and role == REPLY and THINK in ids:
                ids = ids[ids.index(THINK) + 1:]
            stopped = ids[-1:] == [STOP]
            out += [role] + ids if self.glm else [OPEN, role, LINE] + ids + ([] if stopped else [STOP]) + [LINE]
        return out + ([REPLY] if self.glm else [OPEN, REPLY, LINE])

    def call(self, prompt, output, finish="stop"):
        self.turns.append((prompt, output, self.sampled, finish))
        self.sampled += len(output)

    def harness(self, blocks):
        """What happens to a conversation between two calls."""
        if self.now("sub", .5) and len(self.agents) < 5:
            blocks = self.agent()
            self.agents.append(blocks)
        elif self.now("sub", .3) and len(self.agents) > 1:
            self.agents[0].append([TOOL, self.agents.pop()[-1][1]])
            blocks = self.agents[0]
        if self.now("branch", .5) and len(blocks) > 3:
            blocks = [list(b) for b in blocks[:self.r.randrange(2, len(blocks))] if b[0] != REPLY or self.r.random() < .9]
            self.agents.append(blocks)
        if self.now("header"):
            blocks[0][1] = self.some()
        if self.now("compact", .3) and len(blocks) > 4:
            summary = self.some()
            self.call(self.render(blocks + [[USER, self.words(2)]]), summary + [STOP])
            blocks[2:] = [[USER, summary]] + blocks[-1:] * self.r.randrange(2)
        return blocks

    def step(self, blocks):
        shown = blocks[:2] + [[USER, self.words(2)]] + blocks[-3:] if self.now("window") and len(blocks) > 6 else blocks
        open_ = self.words(2) if self.now("prefill", .5) else []
        prompt = self.render(shown, self.now("strip")) + open_
        out = self.respell(self.words(1) if self.now("one") else self.some(), self.r.randrange(3))
        if self.now("think"):
            out = self.some() + [THINK] + out
        finish, stop = "stop", [self.r.choice([USER, TOOL])] if self.glm else [STOP]
        if self.now("limit"):
            finish, stop = self.r.choice(["length", "abort"]), []
        if self.now("bare"):
            stop = []
        out += stop
        if self.now("one", .3):
            out = out[-1:]
        if self.now("empty", .5):
            self.call(prompt, [], "abort")
        if self.now("begun"):
            self.call(prompt, out[:len(out) // 2], "length")
        for _ in range(self.r.randrange(1, 4) if self.now("retry") else 0):
            self.call(prompt, out[:self.r.randrange(len(out))] + self.some() + stop, finish)
        for again in [out] * (2 if self.now("twice") else 1) + ([self.some() + stop] if self.now("same") else []):
            self.call(prompt, again, finish)
        self.record(blocks, open_ + out, finish)

    def record(self, blocks, reply, finish):
        """What the history shows of a reply, and what answers it."""
        if finish != "stop" and self.now("cut"):
            reply = reply[:self.r.randrange(len(reply) + 1)]
        if self.now("drift"):
            reply = self.respell(reply, self.r.randrange(1, self.respelled + 1))
        answer = self.r.choice([USER, TOOL])
        if self.glm and reply[-1:] in ([USER], [TOOL]):
            answer = reply[-1] if self.r.random() < .7 else answer
            reply = reply[:-1]
        blocks.append([REPLY, reply])
        if self.now("earlier"):
            old = self.r.choice([b for b in blocks if b[0] == REPLY])
            old[1] = self.respell(old[1], self.respelled)
        if not self.now("silent"):
            blocks.append([answer, self.words(self.r.randrange(self.size))])
        if self.now("undo", .3) and len(blocks) > 4:
            del blocks[-2:]


def realign_prices(turns, budget):
    """By turn: the turns that may follow it, and the sampled tokens given up for that."""
    prices = {}
    for i, t in enumerate(turns):
        full = t.prompt_ids + t.completion_ids
        for j, u in enumerate(turns):
            if t.completion_ids and u.completion_ids and i != j:
                n = next((k for k, (a, b) in enumerate(zip(full, u.prompt_ids)) if a != b), min(len(full), len(u.prompt_ids)))
                if n == len(full) or len(t.prompt_ids) < n and len(full) - n <= budget:
                    prices.setdefault(i, {})[j] = len(full) - n
    return prices


def fewest(turns, budget):
    """Rows and dropped tokens: an assignment of most joins and least price, by shortest augmenting paths."""
    prices, before = realign_prices(turns, budget), {}
    while True:
        best, queue = {}, [(i, 0) for i in prices if i not in before.values()]
        for i, paid in queue:
            for j, price in prices[i].items():
                if j not in best or paid + price < best[j][0]:
                    best[j] = paid + price, i
                    if j in before:
                        queue.append((before[j], paid + price - prices[before[j]][j]))
        ends = [(price, j) for j, (price, _) in best.items() if j not in before]
        if not ends:
            return sum(1 for t in turns if t.completion_ids) - len(before), sum(prices[i][j] for j, i in before.items())
        j = min(ends)[1]
        while j is not None:
            i = best[j][1]
            left = next((k for k, owner in before.items() if owner == i), None)
            before[j], j = i, left


made = []
for i in range(cases):
    r = random.Random(f"{seed} {i}")
    turns, size = r.choice([(1, 20), (3, 3), (8, 3), (20, 3), (40, 3), (13, 8), (40, 8), (20, 60)]) if i else (1000, 12)
    case = {"id": str(i), "turns": [{"base": -1, "keep": 0, "add": p, "completion_ids": c, "lp0": at, "finish_reason": why} for p, c, at, why in Rollout(r, turns, size).turns]}
    expanded = check.expand(case)
    expect = check.expectations(expanded)
    expect["realign"] = {d: fewest(expanded, d) for d in BUDGETS} if turns < 1000 else {}
    made.append((case, expanded, expect))
failed, rows = [], {}
with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as f:
    f.writelines(json.dumps(case) + "\n" for case, _, _ in made)
    f.flush()
    for mode, flags in RUNS:
        out = subprocess.run([plumb, "merge", *flags, f.name], capture_output=True, text=True, check=True).stdout.splitlines()
        assert len(out) == len(made), f"{len(made)} lines in, {len(out)} out"
        for (case, turns, expect), line in zip(made, map(json.loads, out)):
            s, said = check.score(turns, line), line["report"]
            counted = (said["rows"], said["sampled_tokens"], said["trained_tokens"], said["dropped_tokens"], said["stop_tokens"], said["stop_tokens_lost"])
            wanted = expect["realign"].get(int(flags[-1])) if "realign" in flags else None
            if not check.ok(s, expect, mode) or wanted not in (None, (s["rows"], s["declared_dropped"])) or counted != (s["rows"], s["sampled"], s["once"], s["declared_dropped"], s["stops"], s["stop_lost"]):
                failed.append(" ".join(flags) + " on " + case["id"])
print(f"{len(made)} random rollouts of {sum(len(t) for _, t, _ in made)} turns under {len(RUNS)} policies, {len(failed)} differ", *failed[:5])
sys.exit(bool(failed))
