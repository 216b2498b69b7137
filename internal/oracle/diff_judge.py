"""Compares `plumb votes` and `judge-prompt` with the rules of the prm kit on random texts.

usage: diff_judge.py PLUMB COUNT [SEED]

The rules are those of the kit's README, with Python's own re, str.strip and float.
"""
import collections
import hashlib
import random
import re
import sys

from plumbing import compare, report

PLUMB, COUNT = sys.argv[1], int(sys.argv[2])
rand = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
BOX = re.compile(r"\\boxed\{((?:[^{}]|\{[^{}]*\})*)\}")
DIGIT_BOX = re.compile(r"\\boxed\{([-+]?\d)\}")
DECIMAL = re.compile(r"[-+]?\d+(?:\.\d+)?")
HINT = re.compile(r"\[HINT_START\](.*?)\[HINT_END\]", re.DOTALL)
MARKS = ["1", "-1", "+1", "0", "1.0", "-1.0", "+1.00", "01", "-01", "1.", "1e0", ".5", "1.0000000001", "0.9999999999", "1.00000001", "１", "-１", "١", "−1", "1 ", "\u00a01", " -1\n", "\x1c1", "\u200b1", "+ 1", "--1", "5", "-0",
         "1.0.0", "", "\\text{1}", "{1}", "{{1}}", "{1}{", "𝟏", "-𝟭", "1.٠", "①", "²", "\u0661.0", "\ufeff1", "1\u2028", "\x851"]
NO_BOXES = ["\\boxed", "\\boxed{", "\\boxed {1}", "boxed{1}", "\\\\boxed{1}", "\\Boxed{1}", "\\boxed{1", "}", "\\boxed{\\boxed{1}}", "\\boxed{a{b}c}", "\\boxed{-1}}", "[HINT_END]", "[HINT_START]"]
HINTS = ["", " a hint ", " a hint  a hint ", "é" * 9, "é" * 11, "\nline\nline two\n", "[HINT_START] nested", "\u00a0\u00a0x\u2003", "0123456789", "01234567890", " 01234567890 ", "😀" * 11]
WORDS = ["word", "\n", "  ", "日本語", "😀", "é", " the file the "]
PIECES = ["word ", "日本語 ", "😀", "é", "{brace}", "\n", "{{x}}", "%s", '  File "a", line 3\n', "e\u0301", "\\boxed{1}", "<|im_end|>"]


def judge_text():
    fragments = [lambda: "\\boxed{" + rand.choice(MARKS) + "}", lambda: rand.choice(NO_BOXES), lambda: rand.choice(WORDS) * rand.randint(1, 30),
                 lambda: "[HINT_START]" + rand.choice(HINTS) + rand.choice(["[HINT_END]"] * 5 + ["[HINT_END", ""])]
    return "".join(rand.choices(fragments, [5, 1, 2, 2])[0]() for _ in range(rand.randint(0, rand.choice([1, 2, 4, 8]))))


def first_box(text):
    box = BOX.search(text)
    if not box or not DECIMAL.fullmatch(box[1].strip()):
        return 0
    value = float(box[1].strip())
    return 1 if abs(value - 1) < 1e-9 else -1 if abs(value + 1) < 1e-9 else 0


def last_box(text, allowed):
    boxes = DIGIT_BOX.findall(text)
    return int(boxes[-1]) if boxes and int(boxes[-1]) in allowed else None


def hint(text):
    blocks = HINT.findall(text)
    return blocks[-1].strip() if blocks else ""


def text_case():
    text = judge_text()
    return {"text": text}, {"swe_first_boxed": first_box(text), "chat_last_boxed": last_box(text, (-1, 0, 1)), "opd_judge_score": last_box(text, (-1, 1)),
                            "opd_hint": hint(text), "terminal_last50": first_box(text[-50:])}


def votes_case():
    sources = [lambda: None, judge_text, lambda: f"\\boxed{{{rand.choice([1, -1, 0])}}}", lambda: "\\boxed{1}[HINT_START]" + "h" * rand.randint(8, 14) + "[HINT_END]"]
    votes = [rand.choice(sources)() for _ in range(rand.randint(0, 7))]
    swe = [0 if v is None else first_box(v) for v in votes]
    chat = [None if v is None else last_box(v, (-1, 0, 1)) for v in votes]
    valid = [s for s in swe if s]
    top = collections.Counter(s for s in chat if s is not None).most_common(2)
    majority = float(top[0][0]) if len(top) == 1 or top and top[0][1] > top[1][1] else 0.0
    useful = [i for i, v in enumerate(votes) if v is not None and last_box(v, (-1, 1)) == 1 and len(hint(v)) > 10]
    return {"votes": votes}, {"swe": {"scores": swe, "valid_count": len(valid), "mean_valid": sum(valid) / len(valid) if valid else 0.0}, "chat": {"scores": chat, "majority": majority},
                              "opd_best_hint_index": max(useful, key=lambda i: len(hint(votes[i]))) if useful else None}


def combine_case():
    steps = rand.sample(range(20), rand.randint(0, 7))
    results = [{"exception": True} if rand.random() < 0.25 else {"mean": rand.choice([1.0, -1.0, 0.0, 1 / 3, rand.uniform(-1, 1)])} for _ in steps]
    outcome, coef, mask = rand.choice([1.0, -1.0, 0.0, 0.5]), rand.choice([0.0, 0.5, 1.0, 2.0, -1.0]), [int(rand.random() < 0.6) for _ in range(rand.randint(0, 14))]
    in_order = [r for _, r in sorted(zip(steps, results), key=lambda p: p[0])]
    scores = [r.get("mean", 0.0) for r in in_order]
    mean = sum(scores) / len(scores) if scores else 0.0
    spans = [list(m.span()) for m in re.finditer("1+", "".join(map(str, mask)))]
    return ({"judged_steps": steps, "results": results, "outcome": outcome, "coef": coef, "loss_mask": mask},
            {"step_scores": scores, "status": ["exception" if "exception" in r else "ok" for r in in_order], "step_mean": mean, "score": outcome + coef * mean, "acc": float(outcome > 0), "mask_spans": spans})


def filled(lengths):
    """Text of about one of the lengths, in code points."""
    n = max(0, rand.choice(lengths) + rand.choice([-1, 0, 1, rand.randint(-300, 300)]))
    return "".join(rand.choices(PIECES, k=n))[:n]


def shown(output, limit):
    text = output if len(output) <= 4000 else f"{output[:2000]}\n... ({len(output) - 4000} characters omitted) ...\n{output[-2000:]}"
    return text if len(text) <= limit else f"{text[:limit]}\n... (truncated to {limit} chars)"


def prompt_case():
    steps = [{"action": f"do {i}" + rand.choice(["", "", "x" * 1500]), "returncode": rand.choice([0, 1, 124, -1, None]), "output": filled([0, 50, 1000, 2000, 4000, 6000])} for i in range(rand.randint(0, 12))]
    at, problem = rand.randint(0, len(steps)), filled([20, 8000, 9000])
    history = [{"step": i + 1, "action": steps[i]["action"], "returncode": steps[i]["returncode"], "output": shown(steps[i]["output"], 1000)} for i in range(max(0, at - 8), at)]
    text = problem if len(problem) <= 8000 else problem[:8000] + "\n... (truncated)"
    current = steps[at] if at < len(steps) else {"output": "", "returncode": None}
    return ({"problem": problem, "policy_response": "", "steps": steps, "step_index": at},
            {"history": history, "n_history": len(history), "step_number": at + 1, "current_output": shown(current["output"], 4000), "returncode": current["returncode"],
             "problem_text": text if len(text) < 8000 else {"len": len(text), "sha256": hashlib.sha256(text.encode()).hexdigest(), "tail": text[-40:]}})


def main():
    votes = [make() for make in (text_case, votes_case, combine_case) for _ in range(COUNT)]
    prompts = [prompt_case() for _ in range(COUNT // 10)]
    report(len(votes) + len(prompts), compare(PLUMB, "votes", votes, 1e-12) + compare(PLUMB, "judge-prompt", prompts))


main()
