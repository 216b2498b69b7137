"""Measures tokenizer engines on new text in one run, one thread each.

usage: bench_bpe.py CORPUS_DIR TOKENIZER_JSON GO_TEST_BINARY [NAME=qwen3] [MB=40] [PASSES=5] [KIND...]

CORPUS_DIR is filled with code.txt, logs.txt, prose.txt and cjk.txt where they are
missing: files of this machine, each used once, and where there are too few (logs,
CJK) text drawn from what was found by its runs of characters. In each pass a freshly
loaded engine encodes a text once from beginning to end in parts of 1 KB and of 16 KB,
its warm-up counted; engines take turns. Ours is BenchmarkNewText/NAME of
`go test -c ./tokenize/bpe`; the peers are PyPI fastokens and tokenizers (its first
2 MB). Prints the table of docs/bench/bpe.md: medians with the spread, MB of UTF-8 per
second of processor time.
"""
import os
os.environ.update(RAYON_NUM_THREADS="1", TOKENIZERS_PARALLELISM="false", RAYON_RS_NUM_THREADS="1", GOMAXPROCS="1")
import collections, glob, json, random, re, statistics, subprocess, sys, time

corpus, definition, binary = sys.argv[1:4]
name = sys.argv[4] if len(sys.argv) > 4 else "qwen3"
limit = int(float(sys.argv[5]) * 1e6) if len(sys.argv) > 5 else 40_000_000
passes = int(sys.argv[6]) if len(sys.argv) > 6 else 5
rnd = random.Random(1)
KINDS = sys.argv[7:] or ("code", "logs", "prose", "cjk")


def gather(patterns, wanted=lambda t: True):
    files, out, size = [f for p in patterns for f in sorted(glob.glob(p, recursive=True))], [], 0
    rnd.shuffle(files)
    for f in files:
        try:
            t = open(f, encoding="utf-8").read(400_000)
        except (UnicodeDecodeError, OSError):
            continue
        if wanted(t):
            out.append(t)
            size += len(t.encode())
        if size > limit:
            break
    return "".join(out)


def drawn(text, size, order):
    """Text of about size bytes whose runs of order + 1 characters occur in text."""
    after = collections.defaultdict(list)
    for i in range(len(text) - order):
        after[text[i:i + order]].append(text[i + order])
    out, state = [], text[:order]
    while size > 0:
        if state not in after:
            i = rnd.randrange(len(text) - order)
            state = text[i:i + order]
        c = rnd.choice(after[state])
        state = state[1:] + c
        out.append(c)
        size -= len(c.encode())
    return "".join(out)


def fill():
    os.makedirs(corpus, exist_ok=True)
    env = lambda key: subprocess.check_output(["go", "env", key], text=True).strip()
    root, modules = env("GOROOT"), env("GOMODCACHE")
    asian = lambda t: sum(c > "\u2e80" for c in t) > len(t) / 5
    sets = {
        "code": ([root + "/src/**/*.go", modules + "/**/*.go", os.path.dirname(os.__file__) + "/**/*.py"], None, 0),
        "logs": (["../shared/data/trajectories/**/*.json*"], None, 6),
        "prose": ([modules + "/**/*.md", "/usr/share/doc/**/*"], None, 6),
        "cjk": (["/usr/share/vim/vim*/tutor/tutor*.[jkz]*", modules + "/**/*.md", root + "/test/**/*"], asian, 2),
    }
    for kind, (patterns, wanted, order) in sets.items():
        path = os.path.join(corpus, kind + ".txt")
        if os.path.exists(path):
            continue
        text = gather(patterns, wanted or (lambda t: True))
        size = len(text.encode())
        if size < limit // 2 and len(text) > 10_000 and order:
            text += drawn(text, limit // 2 - size, order)
        if text:
            open(path, "w", encoding="utf-8").write(text.encode()[:limit].decode(errors="ignore"))


def parts(path, size, most):
    b, out, i = open(path, "rb").read()[:most], [], 0
    while i < len(b):
        j = min(i + size, len(b))
        while j < len(b) and b[j] & 0xC0 == 0x80:
            j += 1
        out.append(b[i:j].decode(errors="ignore"))
        i = j
    return out


def ours(kind, size, offsets):
    said = subprocess.check_output([os.path.abspath(binary), "-test.run=xxx", "-test.benchtime=1x", f"-test.bench=NewText$/{name}$/{kind}$/{size}$/offsets={offsets}"],
                                   text=True, env=dict(os.environ, TURNPACK_CORPUS=os.path.abspath(corpus)), cwd="tokenize/bpe")
    return float(re.search(r"([\d.]+) MB/cpu-s", said)[1])


def peer(module, kind, size, most):
    """One pass in a process of its own, which loads the engine anew."""
    code = f"import sys; sys.argv = {sys.argv[:4]!r}; exec(open({__file__!r}).read()); once({module!r}, {kind!r}, {size}, {most})"
    return float(subprocess.check_output([sys.executable, "-c", code], text=True, env=dict(os.environ, BENCH_BPE_ONCE="1")).split()[-1])


def once(module, kind, size, most):
    tok = __import__(module).Tokenizer.from_file(definition)
    items = parts(os.path.join(corpus, kind + ".txt"), size, most)
    start = time.process_time()
    for s in items:
        made = tok.encode(s)
        getattr(made, "ids", made)
    print(sum(len(s.encode()) for s in items) / (time.process_time() - start) / 1e6)


def main():
    fill()
    print("load average", os.getloadavg())
    print("| tokenizer | text | part, bytes | bpe | bpe with offsets | fastokens | tokenizers | bpe / fastokens | ids / offsets |\n" + "|---" * 9 + "|")
    for kind in KINDS:
        if not os.path.exists(os.path.join(corpus, kind + ".txt")):
            print("skipped: no text for", kind)
            continue
        for size in (1024, 16384):
            rates = collections.defaultdict(list)
            for k in range(passes):
                rates["bpe"].append(ours(kind, size, "false"))
                rates["fastokens"].append(peer("fastokens", kind, size, limit))
                rates["bpe with offsets"].append(ours(kind, size, "true"))
                if k == 0:
                    rates["tokenizers"].append(peer("tokenizers", kind, size, 2_000_000))
            m = {k: statistics.median(v) for k, v in rates.items()}
            cells = [f"{m[k]:.1f} ({min(v):.1f}–{max(v):.1f})" for k, v in sorted(rates.items())]
            print("| " + " | ".join([name, kind, str(size), *cells, f"{m['bpe'] / m['fastokens']:.2f}", f"{m['bpe'] / m['bpe with offsets']:.2f}"]) + " |", flush=True)
    print("load average", os.getloadavg())


if not os.environ.get("BENCH_BPE_ONCE"):
    main()
