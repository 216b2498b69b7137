"""Asks a verb of `turnpack plumb` about made cases and counts the answers that differ."""
import json
import subprocess


def ask(plumb, verb, cases, *flags):
    text = "".join(json.dumps(c) + "\n" for c in cases)
    p = subprocess.run([plumb, verb, "--errors=data", *flags], input=text.encode(), capture_output=True)
    answers = [json.loads(l) for l in p.stdout.splitlines()]
    if p.returncode or len(answers) != len(cases):
        raise SystemExit(f"plumb {verb}: {len(cases)} lines in, {len(answers)} out, status {p.returncode}: {p.stderr.decode()[:300]}")
    return answers


def close(want, got, tolerance=1e-9):
    """Numbers within tolerance·max(1, |want|), truth values and null exactly; got may have more fields."""
    if want is None or isinstance(want, bool) or isinstance(got, bool):
        return want is got
    if isinstance(want, (int, float)):
        return isinstance(got, (int, float)) and abs(want - got) <= tolerance * max(1, abs(want))
    if isinstance(want, list):
        return isinstance(got, list) and len(want) == len(got) and all(close(w, g, tolerance) for w, g in zip(want, got))
    if isinstance(want, dict):
        return isinstance(got, dict) and all(k in got and close(v, got[k], tolerance) for k, v in want.items())
    return want == got


def compare(plumb, verb, pairs, tolerance=1e-9):
    """Number of pairs (case, wanted fields) that a verb answers otherwise; prints the first three."""
    cases = [{"id": i} | case for i, (case, _) in enumerate(pairs)]
    bad = 0
    for case, (_, want), got in zip(cases, pairs, ask(plumb, verb, cases)):
        if not close(want, got, tolerance):
            bad += 1
            if bad <= 3:
                wrong = {k: (v, got.get(k)) for k, v in want.items() if not close(v, got.get(k), tolerance)}
                print(json.dumps(case)[:1500], "\n want and got:", str(wrong)[:1000], got.get("error", ""))
    return bad


def report(total, bad):
    print(f"{total} cases, {bad} differ")
    raise SystemExit(bad > 0)
