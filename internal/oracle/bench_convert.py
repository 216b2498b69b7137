"""Times the main job against the Python path of the same job, in one run.

    python3 internal/oracle/bench_convert.py MODEL_DIR MINI_SWE_DUMPS [copies]

Needs PyPI transformers and pyarrow, and bin/turnpack (make build). Both sides
read the same chat JSONL and write Parquet. The Python side renders and encodes
each conversation once with apply_chat_template (batched over nothing, as
data-preparation scripts do) and writes ids with pyarrow; it makes no loss mask,
no reward and no advantage, so it does less work than turnpack.
"""
import gzip
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from transformers import AutoTokenizer

model, dumps = sys.argv[1], Path(sys.argv[2])
copies = int(sys.argv[3]) if len(sys.argv) > 3 else 8


def conversations():
    for f in sorted(dumps.glob("v1-*.traj.json.gz")):
        d = json.load(gzip.open(f))
        yield [{"role": m["role"], "content": m["content"]} for m in d["messages"]]


def write(path, times=1, contiguous=False):
    """Groups of `copies` rollouts, `times` groups for each recorded conversation."""
    tasks = [(i, messages) for _ in range(times) for i, messages in enumerate(conversations())]
    order = [(k, t) for k in range(copies) for t in range(len(tasks))]
    if contiguous:
        order.sort(key=lambda o: o[1])
    with open(path, "w") as out:
        for k, t in order:
            i, messages = tasks[t]
            first = dict(messages[0], content="Run %d of task %d.\n%s" % (k, t, messages[0]["content"]))
            out.write(json.dumps({"instance_id": "task-%d" % t, "traj_id": "%d/%d" % (t, k), "resolved": (k + i) % 2 == 0, "messages": [first] + messages[1:]}) + "\n")


def peak(pid):
    """Peak resident MiB of a running process; its rusage would begin with ours."""
    try:
        with open("/proc/%d/status" % pid) as f:
            return next(int(l.split()[1]) / 1024 for l in f if l.startswith("VmHWM"))
    except (OSError, StopIteration):
        return 0


def turnpack(src, out):
    start, rss = time.perf_counter(), 0
    p = subprocess.Popen(["bin/turnpack", "convert", "--model", model, "--in", src, "--out", out, "--force", "--json", "--format", "openai-chat"], stdout=subprocess.PIPE)
    while p.poll() is None:
        rss = max(rss, peak(p.pid))
        time.sleep(0.005)
    took = time.perf_counter() - start
    if p.returncode:
        sys.exit("turnpack failed")
    return took, json.loads(p.stdout.read()), rss


def python(src, out):
    start = time.perf_counter()
    tok = AutoTokenizer.from_pretrained(model)
    loaded = time.perf_counter() - start
    rows = []
    for line in open(src):
        rows.append(tok.encode(tok.apply_chat_template(json.loads(line)["messages"], tokenize=False), add_special_tokens=False))
    pq.write_table(pa.table({"input_ids": pa.array(rows, pa.list_(pa.int32()))}), out, compression="zstd")
    return time.perf_counter() - start, loaded, sum(map(len, rows))


with tempfile.TemporaryDirectory() as tmp:
    src = tmp + "/dump.jsonl"
    write(src)
    ratios = []
    for _ in range(3):
        t, s, rss = turnpack(src, tmp + "/batch")
        p, loaded, n = python(src, tmp + "/py.parquet")
        ratios.append(p / t)
        print("turnpack %.2f s (%d rows, %d tokens, peak %.0f MiB)   python %.2f s (%d tokens, %.2f s of it loading)   ratio %.1f" % (t, s["rows"], s["tokens"], rss, p, n, loaded, p / t))
    print("median ratio %.1f" % sorted(ratios)[1])
    for contiguous in (True, False):
        peaks = []
        for times in (1, 10, 100):
            write(src, times, contiguous)
            runs = [turnpack(src, tmp + "/batch") for _ in range(3 if times < 100 else 1)]
            peaks.append(sorted(r[2] for r in runs)[len(runs) // 2])
            t, s, _ = min(runs, key=lambda r: r[0])
            print("groups %s: %d rollouts, peak %.0f MiB (median of %d), %.0f tokens/s" % ("contiguous" if contiguous else "interleaved", s["rollouts"], peaks[-1], len(runs), s["tokens"] / t))
        print("memory for ten times the rollouts: %.2f, %.2f" % (peaks[1] / peaks[0], peaks[2] / peaks[1]))
