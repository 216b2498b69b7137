"""What one long record costs in memory, by what it holds and by what is written.

memory.py TURNPACK MODEL [--mb 30] [--contents NAME ...] [--outputs NAME ...] [--dir FOLDER]

Makes dumps of one record each (text, base64 and digits as one observation, digits in 300 or 30 observations
or replies, letters with accents of their own, digits in a SWE-agent trajectory, and captured ids of replies with log probabilities and policy versions) and converts each into each kind of output. Prints the peak resident
memory of the command in bytes for a byte of the record, less that of the same command over a record of
a few bytes, which is the command and the model; "refused" with the error where the output takes no such
row. MODEL is a folder with a tokenizer.json and a chat template. The folder is removed at the end.
"""
import argparse, base64, json, os, random, resource, shutil, subprocess, sys, tempfile, time

rng = random.Random(7)
WORDS = ["handler", "request", "response", "parser", "undefined", "value", "expected", "result"]


def text(n):
    lines, size = [], 0
    while size < n:
        lines.append(f"a line of what the command printed: module {rng.randrange(10**6)}, {rng.choice(WORDS)} of the {rng.choice(WORDS)}\n")
        size += len(lines[-1])
    return "".join(lines)


def digits(n):
    return str(rng.getrandbits(int(n * 3.33)))[:n] if n < 4000 else "".join(digits(3000) for _ in range(n // 3000))


def chat(observations, replies):
    m = []
    for o, r in zip(observations, replies):
        m += [{"role": "user", "content": o}, {"role": "assistant", "content": r, "sampled": "sampled"}]
    steps = [{"step": i, "score": 1 - i % 3} for i in range(len(replies))]
    return {"id": "r", "group": "g", "status": "completed", "messages": m, "outcome": {"resolved": True}, "steps": steps}


def swe_agent(steps, fill, n):
    history = [{"role": "system", "content": "You are an engineer.", "agent": "primary"}]
    trajectory = []
    for i in range(steps):
        seen = fill(n // steps)
        history += [{"role": "user", "content": seen, "agent": "primary"}, {"role": "assistant", "content": f"step {i}\n```\nls\n```", "thought": f"step {i}\n", "action": "ls\n", "agent": "primary"}]
        trajectory.append({"action": "ls\n", "observation": seen, "response": f"step {i}\n```\nls\n```", "state": "{}", "thought": f"step {i}\n"})
    return {"environment": "swe_main", "trajectory": trajectory, "history": history, "info": {"exit_status": "submitted", "submission": "x", "model_stats": {}}}


def captured(n):
    """Ids of digits in byte-level vocabularies, sampled in 300 turns, with what the engine tells of each."""
    turns, per, seen = [], n // 300 // 24, 0
    for i in range(300):
        out = [15 + rng.randrange(10) for _ in range(per)]
        prompt = {"base": i - 1, "keep": seen, "add": [15, 16]} if i else [15, 16]
        seen += 2 + per
        turns.append({"prompt_ids": prompt, "output_ids": out, "logprobs": [-rng.random() for _ in out], "version": 3, "sampling": {"temperature": 1}})
    return {"id": "r", "group": "g", "status": "completed", "turns": turns, "outcome": {"resolved": True}}


CONTENTS = {
    "text": lambda n: chat([text(n)], ["next"]),
    "text-300": lambda n: chat([text(n // 300) for _ in range(300)], ["next"] * 300),
    "base64": lambda n: chat([base64.b64encode(rng.randbytes(n * 3 // 4)).decode()], ["next"]),
    "digits": lambda n: chat([digits(n)], ["next"]),
    "digits-300": lambda n: chat([digits(n // 300) for _ in range(300)], ["next"] * 300),
    "replies-300": lambda n: chat(["go on"] * 300, [digits(n // 300) for _ in range(300)]),
    "digits-30": lambda n: chat([digits(n // 30) for _ in range(30)], ["next"] * 30),
    "replies-30": lambda n: chat(["go on"] * 30, [digits(n // 30) for _ in range(30)]),
    "decomposed": lambda n: chat(["e\u0301te\u0301s " * (n // 9)], ["next"]),
    "captured": captured,
    "swe-agent": lambda n: swe_agent(300, digits, n // 2),
}
SHARDS = ["--rows-per-shard", "1000"]
OUTPUTS = {
    "parquet": [],
    "shards": SHARDS,
    "weights": ["--weights", "rollout-mean"],
    "weights+shards": ["--weights", "rollout-mean", *SHARDS],
    "tokens": ["--estimator", "verl_reinforce_pp"],
    "steps": ["--estimator", "openclaw_step_wise", "--step-coef", "1"],
    "versions": ["--policy-version", "3"],
    "whole": ["--mode", "whole"],
    "perstep": ["--mode", "perstep"],
    "slime": ["--target", "slime"],
    "slime-pt": ["--target", "slime", "--pt"],
    "megatron": ["--target", "megatron", "--seq-len", "40000000"],
    "prime-rl": ["--target", "prime-rl", "--seq-len", "40000000"],
    "verl": ["--target", "verl"],
    "skyrl": ["--target", "skyrl"],
    "trl": ["--target", "trl"],
    "areal": ["--target", "areal"],
    "nemo-rl": ["--target", "nemo-rl"],
}


def peak(command, out):
    """Peak resident bytes, processor seconds and the error of a command."""
    shutil.rmtree(out, ignore_errors=True)
    log = open(out + ".log", "w+")
    pid = os.posix_spawn(command[0], command, os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, log.fileno(), 1), (os.POSIX_SPAWN_DUP2, log.fileno(), 2)])
    _, status, used = os.wait4(pid, 0)
    log.seek(0)
    said = log.read()
    shutil.rmtree(out, ignore_errors=True)
    return used.ru_maxrss * 1024, used.ru_utime + used.ru_stime, said if status else ""


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("turnpack")
    p.add_argument("model")
    p.add_argument("--mb", type=float, default=30)
    p.add_argument("--contents", nargs="+", default=list(CONTENTS))
    p.add_argument("--outputs", nargs="+", default=list(OUTPUTS))
    p.add_argument("--most", type=float, default=0, help="fail where a byte takes more")
    p.add_argument("--dir")
    args = p.parse_args()
    turnpack = os.path.abspath(args.turnpack)
    folder = tempfile.mkdtemp(dir=args.dir)
    over = 0
    try:
        dumps, base = {}, {}
        for c in args.contents:
            dumps[c] = os.path.join(folder, c + (".traj" if c == "swe-agent" else ".jsonl"))
            child = os.fork()  # what this process holds would count as the command's
            if not child:
                with open(dumps[c], "w") as f:
                    json.dump(CONTENTS[c](int(args.mb * 2**20)), f, ensure_ascii=False)
                os._exit(0)
            os.waitpid(child, 0)
        rewards = os.path.join(folder, "rewards.jsonl")
        with open(rewards, "w") as f:
            f.write('{"rollout_id": "swe-agent.traj#0", "reward": 1}\n')
        small = os.path.join(folder, "small.jsonl")
        with open(small, "w") as f:
            json.dump(chat(["hi"], ["ho"]), f)
        out = os.path.join(folder, "out")
        command = lambda dump, flags: [turnpack, "convert", dump, "--model", args.model, "--out", out, "--quiet", *flags]
        for o in args.outputs:
            line = []
            least = peak(command(small, OUTPUTS[o]), out)[0]
            for c in args.contents:
                most, seconds, failed = peak(command(dumps[c], OUTPUTS[o] + ["--rewards", rewards] * (c == "swe-agent")), out)
                took = (most - least) / os.path.getsize(dumps[c])
                over += bool(args.most and took > args.most)
                line.append(f"{c} {took:.1f}" + (" refused" if failed else "") + f" ({seconds:.0f} s)")
                if failed:
                    print("   ", failed.strip().splitlines()[-1][:300])
            print(f"{o} (base {least / 1e6:.0f} MB):", ", ".join(line), flush=True)
    finally:
        shutil.rmtree(folder)
    sys.exit(over > 0)


main()
