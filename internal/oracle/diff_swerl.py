"""Random conversations through the context manager and the sample building of swe-rl@0d034dd, as the kits describe them.

usage: python diff_swerl.py PLUMB KITS CASES [MODEL_DIR]

KITS is the folder that holds context_manager/ and seed_parity/. The rules below are first
held against every case there, then against the command on CASES random ones. Without
MODEL_DIR (a Qwen3 tokenizer.json and tokenizer_config.json) only windows are compared.
"""
import gzip, json, random, subprocess, sys, tempfile

plumb, kits, cases = sys.argv[1], sys.argv[2], int(sys.argv[3])
model = sys.argv[4] if len(sys.argv) > 4 else None
NOTE = "[... %d turn(s) of interaction history omitted due to context window limit ...]"
BASE = [{"role": "system", "content": "You are a helpful assistant."}, {"role": "user", "content": "I am a user."}]
ODD = ["", " ", "\n\n", "\r\n", "x\ty", "word", "é", "e\u0301", "日本", "🙂\u200d", "\u00a0", "\u2003", "\u3000", "\x1c", "\x85", "\u200b", "\ufeff", "\x00", "</s>",
       "<|im_end|>", "<|im_start|>assistant\n", "<|endoftext|>", "<think>", "</think>\n", "<think>\nwhy\n</think>\n\nso", "<tool_call>", "</tool_response>"]


def note(n):
    return {"role": "user", "content": NOTE % n}


def words(ms):
    return len(("".join("<%s> %s </s> " % (m["role"], m["content"]) for m in ms) + "<assistant> ").split())


def quarters(ms):
    return -(-len("".join("<%s> %s </s> " % (m["role"], m["content"]) for m in ms) + "<assistant> ") // 4)


def window(ms, count, budget, share):
    """The context manager's decision, in the fields of its kit."""
    total, turns, i = count(ms), [], 2
    while i < len(ms):
        n = 2 if ms[i]["role"] == "assistant" and i + 1 < len(ms) and ms[i + 1]["role"] == "user" else 1
        turns.append(list(range(i, i + n)))
        i += n
    alone = [{"role": "system", "content": "S"}, {"role": "user", "content": "U"}]
    costs = [max(0, count(alone + [ms[k] for k in t]) - count(alone)) for t in turns]
    fixed = count(ms[:2] + [note(0)])
    head, tail, free = 0, len(turns), budget - fixed
    if total <= budget or len(turns) <= 1:
        head = tail
    elif free > 0:
        left = int(free * share)
        right = free - left
        while head < len(turns) and costs[head] <= left:
            left -= costs[head]
            head += 1
        while tail > head and costs[tail - 1] <= right:
            right -= costs[tail - 1]
            tail -= 1
    kept, omitted = list(range(len(ms))), None
    if head < tail:
        omitted = tail - head
        kept = [0, 1] + sum(turns[:head], []) + [-1] + sum(turns[tail:], [])
    shown = [note(omitted) if k < 0 else ms[k] for k in kept]
    return {"total_tokens": total, "fixed_tokens": fixed, "turn_lengths": [len(t) for t in turns], "turn_costs": costs, "kept": kept,
            "unchanged": omitted is None, "omitted_turns": omitted, "tokens_after": count(shown)}, shown


def decide(case):
    return window(case["messages"], {"ws": words, "chars4": quarters}[case["counter"]], case["budget"], case["head_ratio"])[0]


class Seed:
    """The sample building, on a Qwen3 tokenizer and template."""

    def __init__(self, folder):
        import transformers
        self.tok = transformers.AutoTokenizer.from_pretrained(folder)
        empty = [{"role": "user", "content": ""}]
        self.opener = self.ids(empty, True)[len(self.ids(empty)):]
        self.behind = len(self.ids(BASE))

    def ids(self, ms, prompt=False):
        return self.tok.encode(self.tok.apply_chat_template(ms, add_generation_prompt=prompt, tokenize=False), add_special_tokens=False)

    def response(self, m):
        own = self.ids(BASE + [m])[self.behind:]
        mask = [0] * len(own)
        if m["role"] == "assistant":
            last = len(own) - own[::-1].index(self.tok.eos_token_id) if self.tok.eos_token_id in own else len(own)
            mask[len(self.opener):last] = [1] * (last - len(self.opener))
        return own, mask

    def __call__(self, case):
        ms, config = case["messages"], case["config"]
        prompt, ids, mask, last = self.ids(ms[:2], True), [], [], len(ms)
        while last > 2 and ms[last - 1]["role"] == "user":
            last -= 1
        for m in ms[2:last]:
            own, trained = self.response(m)
            ids, mask = ids + own, mask + trained

        def length(before, response):
            n, limit = len(response), config["max_context_len"]
            return n if before + n <= limit else min(n, max(1, limit - before))

        n = length(len(prompt), ids)
        out = {"prompt_ids": prompt, "response_ids": ids, "loss_mask": mask, "steps": [],
               "default_sample": {"response_length": n, "status": "truncated" if n < len(ids) else "completed"}}
        for i, m in enumerate(ms):
            if m["role"] != "assistant":
                continue
            choice, shown = window(ms[:i], lambda x: len(self.ids(x, True)), config["max_input_tokens"], config["head_ratio"])
            before = self.ids(shown, True)
            own, trained = self.response(m)
            n = length(len(before), own)
            out["steps"].append({"context": None if choice["unchanged"] else shown, "context_len": len(shown), "assistant_text": m["content"],
                                 "tokens": before + own[:n], "loss_mask": trained[:n], "response_length": n})
        return out


def same(want, got):
    if isinstance(want, dict):
        return isinstance(got, dict) and all(same(v, got.get(k)) for k, v in want.items())
    if isinstance(want, list) and want and isinstance(want[0], dict):
        return isinstance(got, list) and len(want) == len(got) and all(map(same, want, got))
    return want == got


def text(r, pool):
    t = r.choice(pool)
    for _ in range(r.randrange(4) if r.random() < .5 else 0):
        at = r.choice([0, len(t), r.randrange(len(t) + 1)])
        t = t[:at] + r.choice(ODD) + t[at:]
    return r.choice([t, t, t, t * r.randrange(2, 12), "".join(r.choice(ODD) for _ in range(r.randrange(6)))])


def conversation(r, pool, free):
    """System, user, then replies and observations; free ones begin and go on anyhow."""
    ms = [{"role": role, "content": text(r, pool)} for role in ("system", "user")]
    for k in range(2 * r.choice([0, 1, 2, 3, 5, 8, 13]) + r.randrange(2)):
        ms.append({"role": ("assistant", "user")[k % 2], "content": text(r, pool)})
    if free:
        ms = ms[r.choice([0, 0, 0, 1, 2]):]
        for m in ms:
            if r.random() < .1:
                m["role"] = r.choice(["system", "user", "assistant", "tool", "developer"])
    return ms


def compare(verb, rule, made):
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as f:
        f.writelines(json.dumps(c) + "\n" for c in made)
        f.flush()
        out = subprocess.run([plumb, *verb, "--errors=data", f.name], capture_output=True, text=True, check=True).stdout.split("\n")[:-1]
    assert len(out) == len(made), f"{len(made)} lines in, {len(out)} out"
    return [c["id"] for c, line in zip(made, out) if not same(rule(c), json.loads(line))]


stored = [json.loads(l) for l in open(kits + "/context_manager/cases.jsonl", encoding="utf-8")]
assert all(same(c["expected"], decide(c)) for c in stored), "the rule is not the kit's"
made = []
for i in range(cases):
    r = random.Random(i)
    ms, count = conversation(r, ["Look at the log.", "", "a b  c", "x" * 300], True), r.choice(["ws", "chars4"])
    total = {"ws": words, "chars4": quarters}[count](ms)
    made.append({"id": f"window-{i}", "counter": count, "budget": r.choice([1, 7, total, max(1, total - 1), r.randrange(1, total + 40)]),
                 "head_ratio": r.choice([0, .3, .3, .5, 1, .1, .7, 1 / 3, .29, .57, .999]), "messages": ms})
differ = compare(["window"], decide, made)
compared = len(made)
if model:
    rule = Seed(model)
    stored = [json.loads(l) for l in gzip.open(kits + "/seed_parity/seed_parity.jsonl.gz", "rt", encoding="utf-8")]
    assert all(same(rule(c), c) for c in stored), "the sample rule is not the kit's"
    pool = [m["content"] for c in stored for m in c["messages"]]
    made = []
    for i in range(cases // 10):
        r = random.Random(-1 - i)
        limit = r.choice([1000000, 3000, 1500, r.randrange(300, 6000)])
        made.append({"id": f"samples-{i}", "messages": conversation(r, pool, False),
                     "config": {"max_context_len": limit, "max_input_tokens": max(1, limit - 256), "head_ratio": r.choice([0., .3, .5, 1.])}})
    differ += compare(["seed-parity", "--model", model], rule, made)
    compared += len(made)
print(f"{compared} random conversations, {len(differ)} differ", *differ[:5])
sys.exit(bool(differ))
