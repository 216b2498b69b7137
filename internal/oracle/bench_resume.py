"""What it costs to go on with a convert that was killed when 90 % of its shards were done.

bench_resume.py TURNPACK MODEL [MB]

Makes two native dumps, one of text and one of captured ids, each of MB megabytes (default 100; text a
tenth of it), converts each whole, then kills a second run and lets a third go on from it. Prints
processor seconds and the ratio; both batches must have one manifest. MODEL is a folder with a
tokenizer.json and a chat template.
"""
import json, os, random, resource, shutil, subprocess, sys, tempfile, time


def dumps(folder, megabytes):
    rng = random.Random(5)
    words = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(2, 10))) for _ in range(5000)]
    text = lambda n: " ".join(rng.choices(words, k=n))
    ids = lambda n: [rng.randrange(200) for _ in range(n)]

    def captured():
        context, turns = ids(500), []
        for _ in range(12):
            out = ids(200)
            turns.append({"prompt_ids": context, "output_ids": out, "logprobs": [-3 * rng.random() for _ in out]})
            context = context + out + ids(500)
        return {"turns": turns}

    def messages():
        m = [{"role": "system", "content": text(100)}]
        for _ in range(12):
            m += [{"role": "user", "content": text(250)}, {"role": "assistant", "sampled": "sampled", "content": text(150)}]
        return {"turnpack_version": 1, "messages": m}

    for name, make, size in (("captured", captured, megabytes), ("text", messages, megabytes / 10)):
        path = os.path.join(folder, name + ".jsonl")
        with open(path, "w") as f:
            n = 0
            while f.tell() < size * 1e6 or n % 8:
                record = {"id": f"r{n}", "group": f"g{n // 8}", "status": "completed", "temperature": 1, "outcome": {"resolved": rng.random() < 0.5}}
                f.write(json.dumps(record | make()) + "\n")
                n += 1
        yield name, path


def processor():
    r = resource.getrusage(resource.RUSAGE_CHILDREN)
    return r.ru_utime + r.ru_stime


def convert(command, out, kill_at=None):
    before = processor()
    run = subprocess.Popen(command + ["--out", out], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL if kill_at else None)
    while run.poll() is None:
        time.sleep(0.01)
        try:
            if kill_at and len(json.load(open(out + "/progress.json"))["shards"] or []) >= kill_at:
                run.kill()
        except (OSError, ValueError):
            pass
    if bool(run.wait()) != bool(kill_at):
        sys.exit(f"{' '.join(command)}: exit status {run.returncode}")
    return processor() - before


def main(turnpack, model, megabytes=100):
    with tempfile.TemporaryDirectory() as folder:
        for name, path in dumps(folder, float(megabytes)):
            for flags in ([], ["--estimator", "verl_grpo"], ["--weights", "rollout-mean"]):
                command = [turnpack, "convert", "--quiet", "--model", model, "--in", path, "--groups-per-step", "1"] + flags
                whole, cut = os.path.join(folder, "whole"), os.path.join(folder, "cut")
                full = convert(command, whole)
                want = open(whole + "/manifest.json").read()
                shards = len(json.loads(want)["shards"])
                convert(command, cut, kill_at=shards * 9 // 10)
                rest = convert(command, cut)
                if open(cut + "/manifest.json").read() != want:
                    sys.exit("the batches differ")
                print(f"{name:9} {' '.join(flags) or '(grpo)':26} {shards} shards: whole {full:6.2f} s, the rest {rest:6.2f} s, {100 * rest / full:3.0f} %", flush=True)
                shutil.rmtree(whole), shutil.rmtree(cut)


if __name__ == "__main__":
    main(*sys.argv[1:])
