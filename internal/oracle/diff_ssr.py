"""Compares `plumb ssr` with the rules of the ssr kit on random cases.

usage: diff_ssr.py PLUMB COUNT [SEED]

Rewards and expectations are computed in exact fractions, the expectation as a sum
over every number of solved attempts.
"""
import json
import math
import random
import sys
from fractions import Fraction

from plumbing import compare, report

PLUMB, COUNT = sys.argv[1], int(sys.argv[2])
rand = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
# Outputs of a parser that are no map of results, or only just one.
OUTPUTS = ["", "nope", "[]", "null", "{}", "3", '"x"', '{"a":"PASSED"}', '{"a":"passed","b":"skipped"}', '{"a":1}', '{"a":null}', '{"a":"passed","a":"failed"}', '{"a":true}', ' {"a":"passed"} ', '{"a":"passed"}x', '{"a":["passed"]}']


def inject(solved, attempts, alpha):
    return -alpha if solved in (0, attempts) else 1 - (1 + alpha) * Fraction(solved, attempts)


def a_number():
    alpha = rand.choice(["0.8", "0.5", "0.0", "1.0", "0.3"])
    return float(alpha), Fraction(alpha)


def reward_case():
    alpha, exact = a_number()
    attempts = rand.choice([1, 2, 3, 7, 16, 49, 100])
    solved, valid = rand.randint(0, attempts), rand.random() < 0.8
    return {"kind": "r_inject", "solved": solved, "attempts": attempts, "valid": valid, "alpha": alpha}, {"expected": float(inject(solved, attempts, exact)) if valid else -1.0}


def solve_case():
    tests = [rand.choice(["passed"] * 8 + ["failed"]) for _ in range(rand.randint(1, 8))]
    return {"kind": "r_solve", "tests": tests}, {"expected": -1.0 if "failed" in tests else 1.0}


def attempts_case():
    alpha, exact = a_number()
    attempts, least = [rand.choice(["solved", "failed", "failed", "aborted", "infra_error"]) for _ in range(rand.randint(0, 12))], rand.choice([0, 1, 2, 4])
    solved = attempts.count("solved")
    live = solved + attempts.count("failed")
    return ({"kind": "r_inject_from_attempts", "attempts": attempts, "min_live_attempts": least, "alpha": alpha},
            {"solved": solved, "live": live, "r_inject": float(inject(solved, live, exact)) if live >= max(1, least) else None, "r_solve": [{"solved": 1.0, "failed": -1.0}.get(a) for a in attempts]})


def expectation_case():
    alpha, exact = a_number()
    n = rand.choice([1, 2, 3, 5, 6, 9, 12, 24, 40])

    def mean(p):
        return sum(math.comb(n, k) * p**k * (1 - p) ** (n - k) * inject(k, n, exact) for k in range(n + 1))

    chances = [0.0, 1.0, 0.5, rand.random()]
    value, at = max((mean(Fraction(k, 1000)), -k) for k in range(1001)) if n > 1 else (None, None)
    return ({"n": n, "alpha": alpha, "p": chances}, {"expected_r_inject": [float(mean(Fraction(p))) for p in chances], "expected_r_solve": [2 * p - 1 for p in chances],
            "best_p_grid_0.001": None if at is None else -at / 1000, "best_value": None if value is None else float(value)})


def results(tests, share, known=1.0):
    return {t: "passed" if rand.random() < share else "failed" for t in tests if rand.random() < known}


def check_case():
    modules = ["auth", "cache", "core", "io", "net", "plan", "é x"]
    listed = [f"tests/test_{m}.py" for m in rand.sample(modules, rand.randint(0, 6))]
    changed = [f"src/{m}.py" for m in rand.sample(modules, rand.randint(0, 5))]
    tests = [f"{rand.choice(listed or ['x'])}::test_{k}" for k in range(rand.randint(0, 9))]
    settings = {"min_passing_tests": rand.choice([0, 1, 2, 5]), "min_changed_files": rand.choice([0, 1, 2]), "min_failing_tests": rand.choice([0, 1, 2, 3])}
    original, buggy, weakened = results(tests, 0.99), results(tests + ["only::bug"], 0.4, 0.95), results(tests + ["only::bug"], 0.6, 0.9)
    reversed_runs = {f: results(tests + ["new::test"], 0.5, 0.95) for f in changed}
    repository = [f for f in listed if rand.random() < 0.97] + changed
    weaken = rand.sample(listed, rand.randint(0, len(listed))) if rand.random() < 0.9 else ["tests/other.py"]
    output = rand.choice(OUTPUTS) if rand.random() < 0.1 else json.dumps(original)
    artifact = {"repo_files": repository, "test_files": listed, "weaken_files": weaken, "changed_files": changed, "original": output, "buggy": json.dumps(buggy), "weakened": json.dumps(weakened),
                "inverse": {f: json.dumps(r) for f, r in reversed_runs.items()}}
    failing = first_failing(settings, repository, listed, weaken, changed, output, buggy, weakened, reversed_runs)
    return {"settings": settings, "artifact": artifact}, {"first_failing_check": failing, "r_inject_if_invalid": -1.0 if failing else None}


def first_failing(settings, repository, listed, weaken, changed, output, buggy, weakened, reversed_runs):
    if not listed or not set(listed) <= set(repository) or not set(weaken) <= set(listed):
        return 1
    try:
        original = json.loads(output)
    except ValueError:
        return 2
    if not isinstance(original, dict) or not original or any(v not in ("passed", "failed") for v in map(str, original.values())):
        return 2
    if "failed" in original.values() or len(original) <= settings["min_passing_tests"]:
        return 3
    if len(changed) < settings["min_changed_files"]:
        return 4
    broken = [t for t in original if buggy.get(t) != "passed"]
    if len(broken) < settings["min_failing_tests"]:
        return 5
    if all(weakened.get(t) != "passed" for t in broken):
        return 6
    return 7 if any(all(run.get(t) != "passed" for t in broken) for run in reversed_runs.values()) else 0


def main():
    cases = [make() for make in (reward_case, solve_case, attempts_case, check_case) for _ in range(COUNT)] + [expectation_case() for _ in range(COUNT // 100)]
    report(len(cases), compare(PLUMB, "ssr", cases, 1e-12))


main()
