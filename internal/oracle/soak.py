"""What convert costs by the size of the dump: time, memory, and what a killed run has lost.

soak.py TURNPACK MODEL [--text MB ...] [--small ROLLOUTS ...] [--no-kill] [--dir FOLDER]

Makes dumps of the sizes given, smallest first: of text (rollouts of 30 turns, 100 kB each, cut from the
Go sources of this machine at random places) and of small rollouts (500 bytes, groups of eight, all
groups interleaved: no group is whole before the last eighth of the dump). Converts each into shards,
kills a second run when 60 % of its shards are done, lets a third go on, and compares the batches.
Prints a table: processor and wall seconds, seconds for each megabyte against the size before (1.05
is ten times the input in 10.5 times the time), peak resident MiB of the processes, the rest after the
kill as a share of the whole. MODEL is a folder with a tokenizer.json and a chat template. The folder
takes about 1.5 times the size of the largest dump; it is removed at the end.
"""
import argparse, glob, json, os, random, resource, shutil, subprocess, sys, tempfile, time

rng = random.Random(7)


def sources():
    root = subprocess.run(["go", "env", "GOROOT"], capture_output=True, text=True, check=True).stdout.strip()
    files = sorted(f for f in glob.glob(root + "/src/**/*.go", recursive=True) if os.path.isfile(f))
    rng.shuffle(files)
    return "".join(open(f, encoding="utf-8", errors="ignore").read() for f in files[:4000])


def text_dump(path, megabytes):
    raw = sources()
    piece = lambda n: raw[(at := rng.randrange(len(raw) - n)) : at + n]
    with open(path, "w", encoding="utf-8") as f:
        n = 0
        while f.tell() < megabytes * 1e6 or n % 4:
            m = [{"role": "system", "content": "You are a software engineer."}, {"role": "user", "content": piece(3000)}]
            for _ in range(30):
                m += [{"role": "assistant", "content": piece(rng.randint(200, 1000))}, {"role": "user", "content": piece(rng.randint(500, 5000))}]
            m.append({"role": "assistant", "content": "done"})
            f.write(json.dumps({"id": f"r{n}", "instance_id": f"g{n // 4}", "messages": m, "reward": n % 2}, ensure_ascii=False) + "\n")
            n += 1
    return n


def small_dump(path, rollouts):
    raw = sources()
    piece = lambda n: raw[(at := rng.randrange(len(raw) - n)) : at + n]
    groups = max(1, rollouts // 8)
    with open(path, "w", encoding="utf-8") as f:
        for n in range(rollouts):
            m = [{"role": "user", "content": piece(250)}, {"role": "assistant", "content": piece(150)}]
            f.write(json.dumps({"id": f"r{n}", "instance_id": f"g{n % groups}", "messages": m, "reward": n // groups % 2}, ensure_ascii=False) + "\n")
    return rollouts


def processor():
    r = resource.getrusage(resource.RUSAGE_CHILDREN)
    return r.ru_utime + r.ru_stime


def peak(pid):
    """Peak resident MiB of a running process; its rusage would begin with ours."""
    try:
        with open(f"/proc/{pid}/status") as f:
            return next((int(line.split()[1]) / 1024 for line in f if line.startswith("VmHWM")), 0)
    except OSError:
        return 0


def convert(command, kill_at=None):
    """Processor and wall seconds and peak resident MiB of a run."""
    before, start, rss, out = processor(), time.monotonic(), 0, command[-1]
    run = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    while run.poll() is None:
        rss = max(rss, peak(run.pid))
        if kill_at and len(glob.glob(out + "/**/*.parquet", recursive=True)) >= kill_at:
            run.kill()
        time.sleep(0.02)
    if bool(run.returncode) != bool(kill_at):
        sys.exit(f"{' '.join(command)}: exit status {run.returncode}")
    return processor() - before, time.monotonic() - start, rss


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("turnpack")
    p.add_argument("model")
    p.add_argument("--text", nargs="*", type=float, default=[], metavar="MB")
    p.add_argument("--small", nargs="*", type=int, default=[], metavar="ROLLOUTS")
    p.add_argument("--no-kill", action="store_true")
    p.add_argument("--dir", metavar="FOLDER")
    p.add_argument("flags", nargs="*", help="flags of convert, after --")
    o = p.parse_args()
    print(f"{'dump':>6} {'MB':>7} {'rollouts':>9} {'tokens':>12} {'processor s':>12} {'wall s':>8} {'per MB':>7} {'MiB':>5} {'shards':>7} {'rest':>5}")
    for kind, make, sizes in (("text", text_dump, o.text), ("small", small_dump, o.small)):
        last = None
        for size in sorted(sizes):
            with tempfile.TemporaryDirectory(dir=o.dir) as folder:
                dump, whole, cut = (os.path.join(folder, n) for n in ("dump.jsonl", "whole", "cut"))
                rollouts = make(dump, size)
                mb = os.path.getsize(dump) / 1e6
                # Twenty shards, of whole groups.
                command = [o.turnpack, "convert", "--quiet", "--model", o.model, "--in", dump, "--rows-per-shard", str(-(-rollouts // 20))] + o.flags + ["--out"]
                took, wall, rss = convert(command + [whole])
                want = open(whole + "/manifest.json").read()
                manifest = json.loads(want)
                shards, tokens = len(manifest["shards"]), sum(s["tokens"] for s in manifest["shards"])
                rest = ""
                if not o.no_kill:
                    shutil.rmtree(whole)
                    _, _, again = convert(command + [cut], kill_at=-(-shards * 6 // 10))
                    left, _, resumed = convert(command + [cut])
                    rss = max(rss, again, resumed)
                    if open(cut + "/manifest.json").read() != want:
                        sys.exit("the batch of the run that was killed differs")
                    rest = f"{100 * left / took:.0f} %"
                per = took / mb
                grown = f"{per / last:.2f}" if last else ""
                print(f"{kind:>6} {mb:7.0f} {rollouts:9,} {tokens:12,} {took:12.1f} {wall:8.1f} {grown:>7} {rss:5.0f} {shards:7} {rest:>5}", flush=True)
                last = per


if __name__ == "__main__":
    main()
