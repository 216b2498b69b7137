"""Compares `plumb pivot` with the rules of the pivot kit on random steps.

usage: diff_pivot.py PLUMB COUNT [SEED]

The rules are those of the kit's README for both servers, with Python's own json, str,
int, re and difflib, on which much of a reward depends.
"""
import collections
import difflib
import json
import random
import re
import sys

from plumbing import compare, report

PLUMB, COUNT = sys.argv[1], int(sys.argv[2])
rand = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
WORDS = "fix the Django tests set of and İstanbul ΣΑΣ ΟΔΟΣ. straße ﬁ ǅ a A\u00a0b c\u2003d x\x1cy \u0085 ⅷ Ⅷ \u200b K İ".split(" ")
SCALARS = [None, True, False, 0, 1, 2, -1, 10**30, 10**30 + 1, 1.0, 0.0, -0.0, 1.5, 1.5000009, 1.500002, 1e-7, float("nan"), float("inf")]
SPELLINGS = ["", "{", '{"a":1,}', "nul", "[1,]", "{'a':1}", '{"a":01}', "\ufeff{}", " {} ", "\u00a0{}", '{"a":"x\ny"}', '{"a":1,"a":2}', "-", "1e400", '{"a":1e400}', "-Infinity", '"\\ud800"', '"\\ud83d\\ude00"', '{"a":1.0}x', "[1 2]", '{"a":.5}', '{"a":1.}', '{"a":+1}']
TOOLS = {"edit": ["str_replace_editor", "edit", "ApplyPatch", "write_file"], "bash": ["execute_bash", "bash", "RUN_BASH", "shellcommand"], "search": ["grep", "list_dir", "ls"], "read": ["read_file", "view"],
         "finish": ["finish", "submit"], "think": ["think"], "planning": ["update_plan", "TodoWrite"], "": ["custom", "İ", "other"]}
CATEGORY = {name.lower(): category for category, names in TOOLS.items() for name in names if category}
PATHS = ["a/b/c.py", "/src/a/b/c.py", "b/c.py", "x/c.py", "./b/c.py", "../x", "c.py", "/", "", "src/", "//a//b", "a/b/c.py/", " a/b/c.py ", "été/ñ.py", "a/日本.py", 5, None, ["a/b.py"], True]
COMMANDS = ["ls -la src/a/b", "cat a/b/c.py", "/usr/bin/grep -n foo ./a/b.py", "grep 'x' --include=*.py a/b/c.py d/e/f.py", "cd /testbed && pytest tests/x.py", 'python -c "import a; print(1)"', "sed -n '1,5p' /testbed/a/b.py", "echo é/ü", "\u00a0ls\u2003a/b",
            "cd /", "cd ..", "  ", "grep (a/b) ='x/y'", "make --dir=a/b", "cat x\u0301/y ²/z a\u203fb/c"]
RANGES = [[1, 10], [1, 9], [2, 10], [1, 100], "[1, 10]", "[1,8]", "x", None, [1], [1, -1], ["1", "10"], ["1_0", " 20 "], [1.9, 10.2], [True, 10], [None, 2], [float("inf"), 1], [float("nan"), 1], {}, "{}", '["1","10"]', [10, 1], [5, 5], "null",
          ["+1", "1__0"], ["0x1", "2"], [1e20, 1e21], [10**25, 10**26]]
COMMAND_PATH = re.compile(r"""(?:^|[\s='"(])((?:/[\w._-]+)+|\.\.?/[\w._/-]+|[\w._-]+/[\w._/-]+)""")


# ---- argument comparison: the category of a mismatch, None where values match
def mismatch(want, got, config):
    if not isinstance(got, type(want)):
        return "ARGUMENT_VALUE_TYPE_DIFFERENT"
    if isinstance(want, dict):
        if want.keys() != got.keys():
            return "ARGUMENT_OBJECT_KEYS_DIFFERENT"
        return next(filter(None, (mismatch(v, got[k], config) for k, v in want.items())), None)
    if isinstance(want, list):
        if len(want) != len(got):
            return "ARGUMENT_LIST_LENGTH_DIFFERENT"
        return next(filter(None, (mismatch(w, g, config) for w, g in zip(want, got))), None)
    if isinstance(want, float):
        same = abs(got - want) < 1e-6
    elif isinstance(want, str):
        a, b = (collections.Counter(s.strip().lower().split()) for s in (want, got))
        few = min(a.total(), b.total()) < 2
        same = want == got if few else (a & b).total() / (a.total() + b.total()) >= config["word_count_similarity_threshold"]
    else:
        same = want == got
    return None if same else "ARGUMENT_VALUE_DIFFERENT"


def call_verdict(want, got, config):
    if want["name"] != got["name"]:
        return "UNEXPECTED_TOOL"
    expected = json.loads(want["arguments"])
    try:
        actual = json.loads(got["arguments"])
    except json.JSONDecodeError:
        return "ARGUMENTS_DECODE_ERROR"
    return mismatch(expected, actual, config)


def matching(candidates):
    """Expected calls in a maximum matching; the scarcest are placed first."""
    owner = {}

    def place(i, seen):
        for j in candidates[i]:
            if j not in seen:
                seen.add(j)
                if j not in owner or place(owner[j], seen):
                    owner[j] = i
                    return True
        return False

    for i in sorted(range(len(candidates)), key=lambda i: len(candidates[i])):
        place(i, set())
    return set(owner.values())


def calls_verdict(want, got, config):
    n, m = len(want), len(got)
    if n == m == 1:
        why = call_verdict(want[0], got[0], config)
        return (0.0, why) if why else (1.0, "EXPECTED_TOOL_CALL")
    counted, mode = config.get("parallel_tool_call_rewarding"), config.get("parallel_tool_call_reward_mode")
    if counted and n != m and not config["allow_subset" if m < n else "allow_superset"]:
        return 0.0, "FUNCTION_CALL_BATCH_LENGTH_DIFFERENT"
    verdicts = [[call_verdict(w, g, config) for g in got] for w in want]
    matched = matching([[j for j, why in enumerate(row) if not why] for row in verdicts])
    required = min(n, m) if counted and config["allow_subset"] else n
    if counted and mode == "f1":
        reward = 2 * len(matched) / (n + m)
    elif counted and mode == "fractional":
        reward = len(matched) / required
    else:
        reward = float(len(matched) == required)
    if reward == 1:
        return reward, "EXPECTED_TOOL_CALL" if n == 1 else "EXPECTED_TOOL_CALL_BATCH"
    missed = [row for i, row in enumerate(verdicts) if i not in matched]
    if not missed or len(matched) == m:
        return reward, "FUNCTION_CALL_BATCH_LENGTH_DIFFERENT"
    return reward, next((why for why in missed[0] if why and why != "UNEXPECTED_TOOL"), "UNEXPECTED_TOOL")


def comparison(case):
    calls = [o for o in case["response_output"] if o["type"] == "function_call"]
    said = any(o["type"] == "message" and o["role"] == "assistant" and any(c["type"] == "output_text" for c in o["content"]) for o in case["response_output"])
    want = case["expected_action"]
    if not calls and not said:
        reward, why = 0.0, "NO_ACTION_FOUND"
    elif want["type"] == "message":
        reward, why = (0.0, "NO_EXPECTED_CHAT_MESSAGE") if calls else (1.0, "EXPECTED_CHAT_MESSAGE_FOUND")
    elif not calls:
        reward, why = 0.0, "NO_EXPECTED_TOOL_CALL"
    else:
        try:
            reward, why = calls_verdict(want.get("calls", [want]), calls, case["config"])
        except json.JSONDecodeError:
            return {"error": "JSONDecodeError"}
    return {"reward": reward, "category": why}


def words():
    if rand.random() < 0.15:
        return rand.choice(["", "  ", " a", "a ", "A", "é", "\u00a0", "a\u2028b", "İ x", "i̇ x"])
    return rand.choice([" ", "  ", "\t", "\u00a0", "\u3000"]).join(rand.choice(WORDS) for _ in range(rand.randint(1, 6)))


def value(depth=0):
    kind = rand.random()
    if depth < 3 and kind < 0.15:
        return {rand.choice("abcd"): value(depth + 1) for _ in range(rand.randint(0, 3))}
    if depth < 3 and kind < 0.3:
        return [value(depth + 1) for _ in range(rand.randint(0, 3))]
    return rand.choice(SCALARS) if kind < 0.65 else words()


def changed(v):
    """v, or something that differs little from it."""
    if rand.random() < 0.45:
        return v
    if isinstance(v, dict):
        items = [(k, changed(x)) for k, x in v.items()] + [("e", 1)] * (rand.random() < 0.15)
        return dict(rand.sample(items, len(items)))
    if isinstance(v, list):
        return [changed(x) for x in v] + [value(2)] * (rand.random() < 0.1)
    if isinstance(v, str):
        return rand.choice([v, v.upper(), v.lower(), v + " more", " " + v, " ".join(rand.sample(v.split(), len(v.split())))])
    if isinstance(v, float):
        return rand.choice([v, v + 9e-7, v - 1e-6, v + 1.1e-6])
    return rand.choice([v, not v, float(v), v + 1]) if isinstance(v, int) and abs(v) < 2**53 else v


def spelled(v):
    return rand.choice(SPELLINGS) if rand.random() < 0.03 else json.dumps(v, ensure_ascii=rand.random() < 0.5)


def call(name, arguments):
    return {"type": "function_call", "name": name, "arguments": arguments}


def noise():
    return [{"type": "reasoning", "summary": []}] * (rand.random() < 0.2) + [
        {"type": "message", "role": rand.choice(["assistant", "user"]), "content": rand.choice([[], [{"type": "refusal", "refusal": "n"}], [{"type": "output_text", "text": ""}]])}] * (rand.random() < 0.2)


def comparison_case():
    config = {"word_count_similarity_threshold": rand.choice([0.0, 0.1, 0.25, 0.3, 0.5, 1 / 3])}
    if rand.random() < 0.6:
        config |= {"parallel_tool_call_rewarding": rand.random() < 0.75, "allow_subset": rand.random() < 0.5, "allow_superset": rand.random() < 0.5, "parallel_tool_call_reward_mode": rand.choice(["binary_strict", "fractional", "f1"])}
    values = [{"q": words()} if rand.random() < 0.4 else {k: value(1) for k in rand.sample("abcd", rand.randint(0, 3))} for _ in range(rand.choice([1, 1, 1, 2, 3, 4]))]
    want = [call(rand.choice(["bash", "search", "finish"]), spelled(v)) for v in values]
    got = [call(w["name"], spelled(changed(v))) for w, v in rand.sample(list(zip(want, values)), len(want)) if rand.random() < 0.9]
    got += [call(rand.choice(["bash", "search"]), spelled(value())) for _ in range(rand.choice([0, 0, 0, 1, 2]))]
    action = {"type": "message", "content": words()} if rand.random() < 0.05 else want[0] if len(want) == 1 and rand.random() < 0.8 else {"type": "function_call_batch", "calls": want}
    case = {"server": "argument_comparison", "config": config, "expected_action": action, "response_output": noise() + (got if rand.random() < 0.93 else [])}
    return case, comparison(case)


# ---- swe_pivot
def ratio(a, b):
    return difflib.SequenceMatcher(None, a[:2000], b[:2000]).ratio()


def first_of(arguments, *keys):
    return next((str(arguments[k]).strip() for k in keys if k in arguments), "")


def file_of(arguments):
    return first_of(arguments, "path", "file", "file_path", "filename", "file_name")


def suffix(path, n=3):
    return "/".join(path.strip("/").split("/")[-n:])


def content(arguments):
    if "new_str" in arguments:
        return str(arguments.get("old_str", "")) + "\n" + str(arguments["new_str"])
    return next((str(arguments[k]) for k in ("patch", "diff", "content", "file_text") if k in arguments), "")


def view_range(raw):
    try:
        first, last = json.loads(raw) if isinstance(raw, str) else raw if isinstance(raw, list) else ()
        return int(first), int(last)
    except (TypeError, ValueError):
        return None


def same_target(want, got, category, other):
    if category == other == "edit":
        commands = [str(a.get("command", "")) for a in (want, got)]
        files = [file_of(a) for a in (want, got)]
        if all(commands) and commands[0] != commands[1] or all(files) and suffix(files[0], 2) != suffix(files[1], 2):
            return False
        ranges = [view_range(a.get("view_range")) for a in (want, got)] if commands == ["view", "view"] else [None]
        if not all(ranges):
            return True
        (first, last), (start, end) = ranges
        return max(0, min(last, end) - max(first, start)) / max(1, last - first) >= 0.8
    if category == other == "bash":
        commands = [first_of(a, "command", "cmd") for a in (want, got)]
        verbs = [c.split()[0].rsplit("/", 1)[-1] if c.split() else "" for c in commands]
        found = [{suffix(p) for p in COMMAND_PATH.findall(c) if not p.startswith("--") and len(p) > 2} - {""} for c in commands]
        if all(verbs) and verbs[0] != verbs[1] or all(found) and not found[0] & found[1]:
            return False
        return not all(commands) or ratio(commands[1], commands[0]) >= 0.3
    if {category, other} <= {"search", "read"}:
        files = [file_of(a) for a in (want, got)]
        return not all(files) or suffix(files[0]) == suffix(files[1])
    return True


def likeness(want, got, category, other):
    def part(w, g):
        return ratio(g, w) if g and w else float(g == w)

    if category == other == "edit":
        old, new = ([str(a.get(k, "")) for a in (want, got)] for k in ("old_str", "new_str"))
        if (old[0] or new[0]) and (old[1] or new[1]):
            return min(part(*old), part(*new))
        return part(content(want), content(got))
    if category == other == "bash":
        commands = [first_of(a, "command", "cmd") for a in (want, got)]
        return ratio(commands[1], commands[0]) if all(commands) else 1.0
    return 1.0


def parsed(arguments):
    try:
        return arguments if isinstance(arguments, dict) else json.loads(arguments)
    except json.JSONDecodeError:
        return {}


def levels(want, got, config, score):
    """Fills score level by level and returns the failure."""
    names = [c["name"].lower() for c in (want, got)]
    category, other = (CATEGORY.get(n) for n in names)
    arguments = [parsed(c["arguments"]) for c in (want, got)]
    score["tool_name_match"] = names[0] == names[1] or category is not None and category == other
    if not score["tool_name_match"]:
        return "tool_name_mismatch"
    if config.get("enable_target_match", True):
        score["target_match"] = same_target(*arguments, category, other)
        if not score["target_match"]:
            return "target_mismatch"
    reward = 1.0
    if config.get("enable_argument_similarity", True):
        s = score["similarity"] = likeness(*arguments, category, other)
        full, threshold = config.get("similarity_full_credit", 0.8), config.get("similarity_threshold", 0.4)
        if s < full and (config.get("reward_mode") != "continuous" or s < threshold):
            return "similarity_below_threshold"
        reward = 1.0 if s >= full else 0.5 + 0.5 * (s - threshold) / (full - threshold)
    if config.get("enable_diff_size_shaping", True) and config.get("reward_mode") == "continuous":
        score["diff_size_penalty"] = config.get("diff_size_alpha", 0.1) * min(len(content(arguments[1])) / 500, 1.0) if other == "edit" else 0.0
        reward *= 1 - score["diff_size_penalty"]
    score["reward"] = reward
    return "none"


def verification(want, got, config):
    score = {"reward": 0.0, "tool_name_match": False, "target_match": None, "similarity": None, "diff_size_penalty": None}
    if want is None:
        failure = "expected_action_invalid"
    elif want["name"] is None:
        failure = "unknown_error"
    elif got is None:
        failure = "model_output_invalid"
    else:
        try:
            failure = levels(want, got, config, score)
        except Exception:  # the server answers any exception with this code
            failure = "unknown_error"
    return score | {"failure": failure}


def line():
    return "".join(rand.choice("ab ()=:\néλ😀self.return") for _ in range(rand.randint(0, 40)))


def step_arguments(category):
    odd = rand.random() < 0.1
    arguments = {}
    if category == "bash":
        arguments[rand.choice(["command", "command", "cmd"])] = rand.choice([[rand.choice(COMMANDS)], None, 1.5, {"a": "b'"}]) if odd else rand.choice(COMMANDS) + rand.choice(["", " " + line()])
    if category in ("edit", "search", "read"):
        arguments[rand.choice(["path", "file", "file_path", "filename", "file_name"])] = rand.choice(PATHS)
    if category == "edit":
        texts = [k for k in ("old_str", "new_str", "old_str", "new_str", "patch", "diff", "content", "file_text") if rand.random() < 0.3]
        arguments |= {k: rand.choice([None, 1, 1e22, 1e-5, ["a\n'"], {"k": [True, None, "\x00é\u200b\"'"]}, 1e16]) if odd else line() * rand.choice([1, 1, 2, 8, 60]) for k in texts}
        arguments |= {"command": rand.choice(["view", "view", "str_replace", "", None]), "view_range": rand.choice(RANGES)}
    return arguments


def swe_case():
    category = rand.choice(["edit", "edit", "bash", "bash", *TOOLS])
    want = step_arguments(category)
    got = {k: rand.choice([v, v, v, step_arguments(category).get(k, v), v[:3] + "z" + v[3:] if isinstance(v, str) else v]) for k, v in want.items()}
    if rand.random() < 0.06:
        want, got = (rand.choice([[], ["command", "path"], "path command", None, 5, True, {}, "new_str"]) for _ in range(2))
    names = [rand.choice(TOOLS[category if rand.random() < 0.95 else ""]) for _ in range(2)]
    expected = call(names[0], spelled(want))
    if rand.random() < 0.05:
        expected["name"] = None
    answer = call(names[1], spelled(got)) if rand.random() < 0.96 else None
    choices = {"reward_mode": ["binary", "continuous"], "enable_target_match": [True, False], "enable_argument_similarity": [True, False], "enable_diff_size_shaping": [True, False],
               "similarity_threshold": [0.4, 0.2, 0.0], "similarity_full_credit": [0.8, 0.9, 1.0, 0.5], "diff_size_alpha": [0.1, 0.5, 0.0]}
    config = {k: rand.choice(v) for k, v in choices.items() if rand.random() < 0.4}
    place = rand.choice([{"expected_action": expected}] * 4 + [{"metadata": {"expected_action": expected}}, {"expected_action": {"type": "message"}}])
    found = None if place.get("expected_action", expected) is not expected else expected
    output = noise() + [answer] * bool(answer) + [call("zzz", "{}")] * bool(answer and rand.random() < 0.1)
    return {"server": "swe_pivot", "config": config, "response_output": output} | place, verification(found, answer, config)


def main():
    pairs = [make() for make in (comparison_case, swe_case) for _ in range(COUNT)]
    report(len(pairs), compare(PLUMB, "pivot", pairs))


main()
