"""Measures tokenizer engines on the same texts in one run, one thread each.

usage: bench_bpe.py CORPUS_DIR TOKENIZER_JSON [GO_TEST_BINARY] [SECONDS] [HF_TEST_BINARY]

CORPUS_DIR is filled with code.txt, logs.txt, prose.txt and cjk.txt where it is
empty. Peers: PyPI tokenizers, tiktoken (the same ranks and pattern), fastokens
(its flat batch call, which makes no Python objects, and its plain call). Go's
side are BenchmarkEncode and BenchmarkEncodeCold of `go test -c ./tokenize/bpe`,
and BenchmarkEngines of ./tokenize/hf, the cgo binding. "new" is a text that a
freshly loaded tokenizer sees once, all else has been seen. Each figure is the
median of the passes, MB of UTF-8 per second of processor time (on a shared
machine that tells more than time), with the spread.
"""
import os
os.environ.update(RAYON_NUM_THREADS="1", TOKENIZERS_PARALLELISM="false", RAYON_RS_NUM_THREADS="1")
import glob, json, re, statistics, subprocess, sys, time


SIZES = [int(x) for x in os.environ.get("SIZES", "64 1024 16384 1048576").split()]


def gather(patterns, limit):
    out, size = [], 0
    for p in patterns:
        for f in sorted(glob.glob(p, recursive=True)):
            try:
                t = open(f, encoding="utf-8").read()
            except (UnicodeDecodeError, OSError):
                continue
            out.append(t)
            size += len(t.encode())
            if size > limit:
                return "".join(out)
    return "".join(out)


def fill(d):
    os.makedirs(d, exist_ok=True)
    root = subprocess.check_output(["go", "env", "GOROOT"], text=True).strip()
    shared = "../shared/data/trajectories"
    sets = {
        "code": [root + "/src/net/http/*.go", os.path.dirname(os.__file__) + "/[a-m]*.py"],
        "logs": [shared + "/swe-agent/**/*", shared + "/openhands-*/**/*", shared + "/mini-swe-agent/**/*"],
        "prose": [os.path.expanduser("~/.cargo/registry/src/*/*/[CR]*.md"), "/usr/share/doc/*/README*", "/usr/share/doc/*/copyright"],
        "cjk": ["/usr/share/vim/vim*/tutor/tutor.%s.utf-8" % l for l in ("ja", "ko", "zh_cn", "zh_tw", "zh")],
    }
    for name, patterns in sets.items():
        path = os.path.join(d, name + ".txt")
        if not os.path.exists(path):
            open(path, "w", encoding="utf-8").write(gather(patterns, 2 << 20))


def parts(text, size):
    b = text.encode()
    out, i = [], 0
    while i < len(b):
        j = min(i + size, len(b))
        while j < len(b) and b[j] & 0xC0 == 0x80:
            j += 1
        out.append(b[i:j].decode())
        i = j
    return out, len(b)


def rate(fn, items, size):
    t = time.process_time()
    fn(items)
    return size / (time.process_time() - t) / 1e6


def spread(rates):
    return (statistics.median(rates), min(rates), max(rates)) if rates else (0, 0, 0)


def measure(fn, items, size, seconds):
    fn(items)
    rates, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end or len(rates) < 3:
        rates.append(rate(fn, items, size))
    return spread(rates)


def go(binary, folder, bench, seconds, corpus, count=3, threads="1"):
    """The lines of a Go benchmark."""
    env = dict(os.environ, TURNPACK_CORPUS=os.path.abspath(corpus), GOMAXPROCS=threads)
    return subprocess.check_output([os.path.abspath(binary), "-test.run=xxx", "-test.bench=" + bench, f"-test.count={count}", f"-test.benchtime={seconds}"],
                                   text=True, env=env, cwd=folder).splitlines()


def rates_of(lines, mark=""):
    return spread([float(m[1]) for l in lines if mark in l and (m := re.search(r"([\d.]+) MB/cpu-s", l))])


def tiktoken_of(path):
    import tiktoken
    d = json.load(open(path))
    chars = [*range(33, 127), *range(161, 173), *range(174, 256)]
    table = {chr(c): c for c in chars}
    table.update({chr(256 + i): b for i, b in enumerate(b for b in range(256) if b not in chars)})
    ranks = {bytes(table[c] for c in tok): i for tok, i in d["model"]["vocab"].items() if all(c in table for c in tok)}
    pattern = next(p["pattern"]["Regex"] for p in d["pre_tokenizer"]["pretokenizers"] if p["type"] == "Split")
    return tiktoken.Encoding("bench", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})


def main():
    corpus, definition = sys.argv[1], sys.argv[2]
    binary = sys.argv[3] if len(sys.argv) > 3 else None
    seconds = float(sys.argv[4]) if len(sys.argv) > 4 else 2
    cgo = sys.argv[5] if len(sys.argv) > 5 else None
    fill(corpus)
    import fastokens, tiktoken, tokenizers
    hf = tokenizers.Tokenizer.from_file(definition)
    tk = tiktoken_of(definition)
    ft = fastokens.Tokenizer.from_file(definition)
    print("load average", os.getloadavg(), "tokenizers", tokenizers.__version__, "tiktoken", tiktoken.__version__)
    for name in ("code", "logs", "prose", "cjk"):
        text = open(os.path.join(corpus, name + ".txt"), encoding="utf-8").read()
        for size in SIZES:
            items, n = parts(text, size)
            few, m = parts(text[:1 << 16], size)  # for the slow ones
            row = {}
            if binary:
                lines = go(binary, "tokenize/bpe", f"BenchmarkEncode/{name}/{size}/", f"{seconds}s", corpus)
                row["bpe"], row["bpe +offsets"] = rates_of(lines, "offsets=false"), rates_of(lines, "offsets=true")
                row["bpe new"] = rates_of(go(binary, "tokenize/bpe", f"BenchmarkEncodeCold/{name}/{size}$", "1x", corpus))
            row["fastokens flat"] = measure(lambda x: ft.encode_batch_flat(x), items, n, seconds)
            row["fastokens encode"] = measure(lambda x: [ft.encode(s) for s in x], items, n, seconds)
            row["fastokens flat new"] = spread([rate(fastokens.Tokenizer.from_file(definition).encode_batch_flat, items, n) for _ in range(3)])
            row["tiktoken"] = measure(lambda x: [tk.encode_ordinary(s) for s in x], few, m, seconds / 2)
            row["tokenizers"] = measure(lambda x: [hf.encode(s, add_special_tokens=False) for s in x], few, m, seconds / 2)
            if cgo:
                row["hf through cgo"] = rates_of(go(cgo, "tokenize/hf", f"BenchmarkEngines/{name}/{size}/hf", "1x", corpus))
            print(f"{name:6} {size:8}  " + "  ".join(f"{k} {v[0]:.1f} ({v[1]:.1f}-{v[2]:.1f})" for k, v in row.items()), flush=True)
            if binary:
                least = [min(int(re.search(r"(\d+) allocs/op", l)[1]) for l in lines if "offsets=" + flag in l) for flag in ("false", "true")]
                print(" " * 17 + "allocations per pass over the text: %d, with offsets %d" % tuple(least))
    if binary:
        lines = go(binary, "tokenize/bpe", "Pathological|Load", f"{seconds}s", corpus, 1) + go(binary, "tokenize/bpe", "Parallel/code", f"{seconds}s", corpus, 3, "2")
        print("\n".join(l for l in lines if l.startswith("Benchmark")))
    print("load average", os.getloadavg())


main()
