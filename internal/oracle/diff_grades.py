"""Compares `plumb grade` with PyPI swebench on random test logs.

usage: diff_grades.py PLUMB PEERS CASES_JSONL COUNT [SEED]

PEERS is a folder with the package swebench; CASES_JSONL the grading kit, whose log
lines are mixed, damaged and put between markers. Every parser of the package's
registry is asked; status maps with their order, and the graded lists, are compared.
"""
import contextlib
import io
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import peers

PLUMB, PEERS, CASES, COUNT = sys.argv[1], Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])
SEED = int(sys.argv[5]) if len(sys.argv) > 5 else 1
peers.package("swebench", PEERS / "swebench")
peers.package("swebench.harness", PEERS / "swebench" / "harness")
peers.inert("docker", "git", "requests", "datasets", "dotenv", "pydantic", "unidiff", "tqdm", "modal", "rich", "yaml", "bs4", "ghapi", "chardet", "huggingface_hub")
from swebench.harness import grading  # noqa: E402
from swebench.harness.constants import END_TEST_OUTPUT, START_TEST_OUTPUT, TEST_EXIT_CODE, EvalType  # noqa: E402
from swebench.harness.log_parsers import PARSER_REGISTRY  # noqa: E402

# Lines in the manner of runners that the kit has no log of.
LINES = """>>>>> Patch Apply Failed
>>>>> Reset Failed
>>>>> Tests Errored
>>>>> Tests Timed Out
collected 0 items
no tests ran in 0.01s
Timeout error: 1800 seconds exceeded
ModuleNotFoundError: No module named 'numpy'
bash: line 1: pytest: command not found
OSError: [Errno 28] No space left on device
Killed
Could not resolve host: github.com
error: Your local changes to the following files would be overwritten
Segmentation fault (core dumped)
test_foo (app.tests.Case) ... ok
test_bar (app.tests.Case) ... skipped 'why'
  ✓ does a thing (12 ms)
  ✕ fails (3ms)
  ✔ works
  ○ skipped later
  1) breaks here
  - pending one
✓ src/a.test.ts > suite > case 12ms
 × src/a.test.ts > suite > other
ok 1 - first thing
not ok 2 - second # TODO later
ok 3 - third # SKIP none
# tests 3
test foo::baz ... FAILED
test foo::qux ... ignored
[ok]: a redis test (12 ms)
[err]: broken redis test in tests/unit/x.tcl
PASS test/a.js
[       OK ] Suite.Case (0 ms)
[  FAILED  ] Suite.Other (1 ms)
[  SKIPPED ] Suite.Third (0 ms)
com.foo.Bar > baz() PASSED
 ✔ Adds numbers
 ✘ Breaks
 ∅ Incomplete
Executed 3 of 3 SUCCESS
3 passing (12ms)
Tests:       1 failed, 3 passed, 4 total
  MainTest#test_one = 0.01 s = .
  MainTest#test_two = 0.02 s = F
PASS: test_x
pass  basics/a.py
FAIL  basics/b.py
skip  basics/c.py
12 specs, 0 failures
case-a': ok
Test #1: '.a' at line number 2
*** Expected
test_something ok
test_other F
test_third E""".split("\n")
NOISE = [" ", "\t", "\x1b[32m", "\x1b[0m", "é", "\u00a0", "\u2003", "\r", "[", "]", "-", " - ", ":", "::", "PASSED", "FAILED", " ... ", "ok", "\x0b", "\x1c", "\u2028", "%", "1", "  "]

rand = random.Random(SEED)


def damaged(line):
    if not line:
        return line
    i = rand.randrange(len(line))
    return rand.choice([line[:i] + rand.choice(NOISE) + line[i:], line[:i] + line[i + 1:], line + line, "\x1b[1m" + line + "\x1b[0m", line.strip()])


def log(own, pool):
    body = [rand.choice(own if own and rand.random() < 0.6 else pool) for _ in range(rand.randint(0, 12))]
    body = [damaged(l) if rand.random() < 0.3 else l for l in body]
    if rand.random() < 0.93:
        body.insert(0, f"+ : '{START_TEST_OUTPUT}'")
    if rand.random() < 0.93:
        body.append(f"+ : '{END_TEST_OUTPUT}'")
    if rand.random() < 0.3:
        body.insert(0, rand.choice(pool))
    if rand.random() < 0.3:
        body.append(f"{TEST_EXIT_CODE}: " + rand.choice(["0", "1", "-1", "x", "01"]))
    return rand.choice(["\n"] * 6 + ["\r\n", "\r"]).join(body)


def graded(parser, text, path):
    """The case of one log, with what the package makes of it."""
    path.write_text(text, encoding="utf-8", newline="")
    statuses, found = grading.get_logs_eval(SimpleNamespace(log_parser=parser, instance_id="x", version="1.0", repo="x/y"), str(path))
    tests = list(statuses)
    want = {"FAIL_TO_PASS": tests[:3], "PASS_TO_PASS": tests[3:6]}
    if tests and rand.random() < 0.3:
        want["FAIL_TO_PASS"].append(tests[0][: len(tests[0]) // 2 + 1])
    if rand.random() < 0.2:
        want["FAIL_TO_PASS"].append("absent[")
    kind, patchless = rand.choice(list(EvalType)), rand.random() < 0.05
    report = grading.get_eval_tests_report(statuses, want, eval_type=kind)
    spec = SimpleNamespace(log_parser=parser, instance_id="x", version="1.0", repo="x/y", eval_type=kind.value, **want)
    instance = grading.get_eval_report(spec, {"instance_id": "x", "model_patch": None if patchless else "diff"}, str(path), False)["x"]
    case = {"parser": parser, "version": "1.0", "eval_type": kind.value, "fail_to_pass": want["FAIL_TO_PASS"], "pass_to_pass": want["PASS_TO_PASS"], "patch_is_none": patchless, "log": text}
    expected = {"found": found, "status_map": statuses, "status_order": tests, "f2p_rate": grading.compute_fail_to_pass(report), "p2p_rate": grading.compute_pass_to_pass(report),
                "resolution_of_lists": grading.get_resolution_status(report), "report": instance}
    for field, key in (("f2p", "FAIL_TO_PASS"), ("p2p", "PASS_TO_PASS")):
        expected |= {f"{field}_success": report[key]["success"], f"{field}_failure": report[key]["failure"]}
    return case, expected


def main():
    own = {}
    for line in open(CASES, encoding="utf-8"):
        case = json.loads(line)
        own.setdefault(case["parser"], []).extend(case["log"].split("\n"))
    pool = LINES + [l for lines in own.values() for l in lines]
    cases, wanted, raised = [], [], 0
    with tempfile.TemporaryDirectory() as tmp, contextlib.redirect_stdout(io.StringIO()):  # the parsers print
        while len(cases) < COUNT:
            parser = rand.choice(sorted(PARSER_REGISTRY))
            try:
                case, expected = graded(parser, log(own.get(parser), pool), Path(tmp) / "log")
            except Exception:  # a parser that trips over a damaged line has no answer to compare
                raised += 1
                continue
            cases.append({"id": str(len(cases)), **case})
            wanted.append(expected)
    text = "\n".join(map(json.dumps, cases)) + "\n"
    answers = subprocess.run([PLUMB, "grade"], input=text, capture_output=True, text=True, check=True).stdout.splitlines()
    assert len(answers) == len(cases), f"{len(cases)} lines in, {len(answers)} out"
    bad = 0
    for case, expected, answer in zip(cases, wanted, map(json.loads, answers)):
        if any(answer.get(k) != v for k, v in expected.items()):
            bad += 1
            if bad <= 3:
                print(case["parser"], repr(case["log"]), {k: (v, answer.get(k)) for k, v in expected.items() if answer.get(k) != v})
    some = sum(bool(e["status_map"]) for e in wanted)
    print(f"{len(cases)} logs, {len(PARSER_REGISTRY)} parsers, seed {SEED}, {some} with tests, {raised} without an answer, {bad} differ")
    sys.exit(bad > 0)


main()
