"""Times swebench 5.0.2 on the logs of BenchmarkGrade (same text, same size).
Usage, beside reference.py's environment:  python peer.py"""
import sys
import time
from pathlib import Path
from types import SimpleNamespace

from standin import StandIn

sys.meta_path.append(StandIn())
from swebench.harness.grading import get_logs_eval  # noqa: E402

WORDS = ["PASSED", "PASSED", "PASSED", "FAILED", "SKIPPED"]
LOGS = {
    "parse_log_pytest": lambda i: f"{WORDS[i % 5]} pkg/tests/test_m{i % 97}.py::test_{i}[a-{i}]\n",
    "parse_log_requests": lambda i: f"{WORDS[i % 5]} pkg/tests/test_m{i % 97}.py::test_{i}[/a/b/{i}]\n",
    "parse_log_scikit": lambda i: f"\x1b[32m{WORDS[i % 5]}\x1b[0m pkg/tests/test_m{i % 97}.py::test_{i}\n",
    "parse_log_django": lambda i: f"test_{i} (app{i % 97}.tests.CaseTests) ... {['ok', 'FAIL', 'ERROR'][i % 3]}\n",
    "parse_log_sympy": lambda i: f"test_{i} {['ok', 'F', 'E'][i % 3]}\n",
    "parse_log_gotest": lambda i: f"--- {WORDS[i % 5][:4]}: TestCase{i} (0.01s)\n",
    "parse_log_cargo": lambda i: f"test mod::case_{i} ... ok\n",
    "parse_log_jest": lambda i: f"    ✓ does thing {i} (5 ms)\n",
}
for parser, result in LOGS.items():
    parts, size, i = ["+ git apply -v -\n>>>>> Applied Patch\n+ : '>>>>> Start Test Output'\n"], 0, 0
    while size < 10_000_000:
        text = result(i) + "".join(f"    lib/module_{k}.py:{i}: in call  self.apply(value, *args) [step {k}/{i}] ok = False\n" for k in range(12))
        parts.append(text)
        size += len(text)
        i += 1
    parts.append("+ : '>>>>> End Test Output'\n>>>>> Test Exit Code: 0\n")
    path = Path("peer.log")
    path.write_text("".join(parts))
    spec = SimpleNamespace(instance_id="a", version="1", log_parser=parser)
    best = float("inf")
    for _ in range(5):
        start = time.perf_counter()
        get_logs_eval(spec, str(path))
        best = min(best, time.perf_counter() - start)
    path.unlink()
    print(f"{parser} {size / best / 1e6:.1f} MB/s")
