"""Attacks on the command that need processes: two at once, kills, damaged streams.

attacks.py TURNPACK MODEL [--rounds 24] [--only two kills damage] [--seed 1]

MODEL is a folder with a tokenizer.json and a chat template (tokenize/embedded will do). For each output:
two converts of different dumps to one place at once, of which one must win, leave its own files as a run
alone leaves them, and the other must end with 1 and say why; converts killed at random moments and run
again, which must end with 0 and the same bytes, while audit says of what a kill left that it is not whole;
and dumps in gzip, zstd and zip with bytes changed, cut out, or put in, of which no record that was not
written may be read, under each --on-error. Prints a line for each, ends with 1 where one fails.
"""
import argparse, glob, gzip, hashlib, io, json, os, random, shutil, signal, subprocess, sys, tempfile, time, zipfile

OUTPUTS = {
    "parquet": [], "shards": ["--rows-per-shard", "4"], "weights": ["--rows-per-shard", "4", "--weights", "rollout-mean"],
    "slime": ["--target", "slime"], "slime --pt": ["--target", "slime", "--pt"],
    "slime --pt, steps": ["--target", "slime", "--pt", "--groups-per-step", "2"],
    "megatron": ["--target", "megatron", "--seq-len", "512", "--estimator", "none"],
    "megatron, steps": ["--target", "megatron", "--seq-len", "512", "--estimator", "none", "--groups-per-step", "2"],
    "prime-rl": ["--target", "prime-rl", "--seq-len", "512", "--ranks", "2"],
    "prime-rl, steps": ["--target", "prime-rl", "--seq-len", "512", "--ranks", "2", "--groups-per-step", "2"],
    "verl": ["--target", "verl"], "verl, shards": ["--target", "verl", "--rows-per-shard", "4"],
    "skyrl": ["--target", "skyrl"], "skyrl, steps": ["--target", "skyrl", "--groups-per-step", "2"],
    "trl": ["--target", "trl"], "areal": ["--target", "areal", "--rows-per-shard", "4"], "nemo-rl": ["--target", "nemo-rl"],
    "openclaw": ["--target", "openclaw", "--pt"],
}


def dump(path, word, groups):
    """Rollouts with recorded ids, log probabilities and versions, which every output takes."""
    with open(path, "w") as f:
        for g in range(groups):
            for i in range(4):
                f.write(json.dumps({"id": f"{word}{g}-{i}", "group": f"{word}{g}", "status": "completed", "temperature": 1, "outcome": {"resolved": i % 2 == 0},
                    "turns": [{"prompt_ids": [1, 2, g], "output_ids": [3, 4 + i, 5 + len(word)], "logprobs": [-1, -0.5, -0.25], "version": 3}]}) + "\n")


def tree(folder):
    return {os.path.relpath(p, folder): hashlib.sha256(open(p, "rb").read()).hexdigest() for p in sorted(glob.glob(folder + "/**", recursive=True)) if os.path.isfile(p)}


class Attack:
    def __init__(self, args, folder):
        self.args, self.folder, self.rng, self.bad = args, folder, random.Random(args.seed), 0

    def convert(self, dump, out, flags=(), **more):
        return [self.args.turnpack, "convert", dump, "--model", self.args.model, "--out", out, "--quiet", *flags]

    def run(self, command):
        p = subprocess.run(command, capture_output=True, text=True)
        return p.returncode, (p.stdout + p.stderr).strip()

    def fault(self, *what):
        self.bad += 1
        print("  FAULT", *what, flush=True)

    def two(self, name, flags):
        dumps = [os.path.join(self.folder, d + ".jsonl") for d in ("first", "other")]
        alone = []
        for k, d in enumerate(dumps):
            out = os.path.join(self.folder, f"alone{k}")
            shutil.rmtree(out, ignore_errors=True)
            code, said = self.run(self.convert(d, out, flags))
            if code:
                return self.fault(name, "a run alone ends with", code, said[-300:])
            alone.append(tree(out))
        wins = [0, 0]
        for n in range(self.args.rounds):
            out = os.path.join(self.folder, "both")
            shutil.rmtree(out, ignore_errors=True)
            ps = [subprocess.Popen(self.convert(d, out, flags), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) for d in dumps]
            said = [p.communicate()[0] for p in ps]
            codes = [p.returncode for p in ps]
            if sorted(codes) != [0, 1]:
                self.fault(name, "round", n, "exit", codes, said[0][-200:], said[1][-200:])
                continue
            won = codes.index(0)
            wins[won] += 1
            if not any(w in said[1 - won] for w in ("exists", "complete", "open", "another")):
                self.fault(name, "round", n, "does not say why:", said[1 - won][-200:])
            if tree(out) != alone[won]:
                self.fault(name, "round", n, "the files are not those of a run alone:", sorted(set(tree(out)) ^ set(alone[won]))[:5])
        print(f"two at once, {name}: won {wins[0]} and {wins[1]}", flush=True)

    def kills(self, name, flags):
        source = os.path.join(self.folder, "first.jsonl")
        whole = os.path.join(self.folder, "whole")
        shutil.rmtree(whole, ignore_errors=True)
        began = time.time()
        code, said = self.run(self.convert(source, whole, flags))
        took, want = time.time() - began, tree(whole)
        if code:
            return self.fault(name, code, said[-300:])
        hit = named = 0
        for n in range(self.args.rounds):
            out = os.path.join(self.folder, "killed")
            shutil.rmtree(out, ignore_errors=True)
            for _ in range(1 + n % 3 // 2):
                p = subprocess.Popen(self.convert(source, out, flags), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                try:
                    p.wait(took * self.rng.uniform(0.1, 1.1))
                except subprocess.TimeoutExpired:
                    p.send_signal(signal.SIGKILL)
                    hit += p.wait() != 0
            left = tree(out)
            if left and not want.items() <= left.items():  # a part of a set; what a run notes beside it may be left of a whole one
                code, said = self.run([self.args.turnpack, "audit", out])
                if code == 0:
                    self.fault(name, "round", n, "audit takes what a kill left for whole:", sorted(left)[:6], said[-200:])
                named += code != 0
            code, said = self.run(self.convert(source, out, flags))
            if code or tree(out) != want:
                self.fault(name, "round", n, "the rerun ends with", code, said[-300:], sorted(set(tree(out)) ^ set(want))[:5])
        print(f"kills, {name}: {hit} hit a run before its end, audit named {named}", flush=True)

    def damage(self):
        lines = []
        for i in range(300):
            lines.append(json.dumps({"id": f"r{i}", "group": f"g{i // 4}", "status": "completed", "outcome": {"resolved": i % 2 == 0},
                "messages": [{"role": "user", "content": "%x" % (i * i * 7919 * 104729)}, {"role": "assistant", "content": "word %x" % (i ** 5), "sampled": "sampled"}]}) + "\n")
        text = "".join(lines).encode()
        z = io.BytesIO()
        with zipfile.ZipFile(z, "w", zipfile.ZIP_DEFLATED) as f:
            f.writestr("a.jsonl", text)
        kinds = {"a.jsonl.gz": gzip.compress(text), "a.zip": z.getvalue()}
        if shutil.which("zstd"):
            kinds["a.jsonl.zst"] = subprocess.run(["zstd", "-q", "--check", "-c"], input=text, capture_output=True).stdout
        for file, good in kinds.items():
            ends = {}
            source, whole = os.path.join(self.folder, file), os.path.join(self.folder, "whole")
            shutil.rmtree(whole, ignore_errors=True)
            open(source, "wb").write(good)
            self.run(self.convert(source, whole))
            whole = tree(whole)
            for n in range(self.args.rounds):
                b, at = bytearray(good), self.rng.randrange(len(good))
                how = ("flip", "cut out", "cut short", "put in", "swap")[n % 5]
                if how == "flip":
                    b[at] ^= 1 << self.rng.randrange(8)
                elif how == "cut out":
                    del b[at : at + self.rng.randrange(1, 40)]
                elif how == "cut short":
                    del b[at:]
                elif how == "put in":
                    b[at:at] = self.rng.randbytes(5)
                else:
                    to = self.rng.randrange(len(b))
                    b[at], b[to] = b[to], b[at]
                if bytes(b) == good:
                    continue
                open(source, "wb").write(b)
                for rule in ("report", "skip", "stop"):
                    out = os.path.join(self.folder, "damaged")
                    shutil.rmtree(out, ignore_errors=True)
                    code, said = self.run(self.convert(source, out, ["--on-error", rule]))
                    ends[(rule, code)] = ends.get((rule, code), 0) + 1
                    if code not in (0, 1, 3) or code and not said or code == 1 and tree(out):
                        self.fault(file, how, "at", at, "--on-error", rule, "ends with", code, said[-300:])
                    if code == 0 and rule != "skip" and tree(out) != whole:  # a time or name in a header was hit, or else
                        self.fault(file, how, "at", at, "--on-error", rule, "ends with 0 and other rows")
            print(f"damaged {file}:", ", ".join(f"{r} {c}: {k}" for (r, c), k in sorted(ends.items())), flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("turnpack", type=os.path.abspath)
    p.add_argument("model", type=os.path.abspath)
    p.add_argument("--rounds", type=int, default=24)
    p.add_argument("--only", nargs="+", default=["two", "kills", "damage"])
    p.add_argument("--outputs", nargs="+", default=list(OUTPUTS))
    p.add_argument("--seed", type=int, default=1)
    args = p.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        a = Attack(args, folder)
        for d in ("first", "other"):
            dump(os.path.join(folder, d + ".jsonl"), d, 24)
        for name in args.outputs:
            if "two" in args.only:
                a.two(name, OUTPUTS[name])
        for name in args.outputs:
            if "kills" in args.only:
                a.kills(name, OUTPUTS[name])
        if "damage" in args.only:
            a.damage()
    print(a.bad, "faults")
    sys.exit(a.bad > 0)


main()
