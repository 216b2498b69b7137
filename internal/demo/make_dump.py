"""Writes the sample dump of the demo: 6 tasks, 4 rollouts each, in two formats.

    python3 internal/demo/make_dump.py examples/turnpack/demo/dumps

Every text here was written for this project. Groups 1 to 4 are native rollout
JSONL with tool calls; groups 5 and 6 are chat JSONL with the action in the text.
The set holds a truncated rollout, an aborted one, and a group in which all
rewards are alike.
"""
import json
import sys
from pathlib import Path

TOOLS = [
    {"type": "function", "function": {
        "name": "bash", "description": "Run a shell command in the repository and return what it prints.",
        "parameters": {"type": "object", "properties": {"command": {"type": "string", "description": "The command line."}}, "required": ["command"]}}},
    {"type": "function", "function": {
        "name": "submit", "description": "Hand in the current state of the repository as the answer.",
        "parameters": {"type": "object", "properties": {"summary": {"type": "string", "description": "What was changed and why."}}, "required": ["summary"]}}},
]

SYSTEM = "You repair small bugs in a code repository. Look before you change anything, run the tests after a change, and submit when they pass."

TASKS = [
    dict(key="window-off-by-one", file="stats/window.py", issue="moving_average([1, 2, 3, 4], 2) returns two values, it should return three: 1.5, 2.5 and 3.5.",
         before="    for i in range(len(xs) - n):", after="    for i in range(len(xs) - n + 1):",
         fail="AssertionError: [1.5, 2.5] != [1.5, 2.5, 3.5]", wrong="    for i in range(len(xs)):", wrong_fail="AssertionError: [1.5, 2.5, 3.5, 2.0] != [1.5, 2.5, 3.5]",
         why="The last window starts at len(xs) - n, and range leaves its end out, so the loop stops one window early."),
    dict(key="csv-quote", file="tables/csvout.py", issue="A cell that holds a comma is written without quotes, so the row has one column too many when it is read back.",
         before="    if '\"' in cell:", after="    if any(c in cell for c in ',\"\\n'):",
         fail="AssertionError: 4 columns, expected 3", wrong="    if ',' in cell and '\"' in cell:", wrong_fail="AssertionError: 4 columns, expected 3",
         why="Only a quote makes the writer quote the cell. A comma and a line break need it as well."),
    dict(key="retry-backoff", file="net/retry.py", issue="The waiting time between two tries never grows: a server that is down gets a request every second.",
         before="        delay = base", after="        delay = min(base * 2 ** attempt, limit)",
         fail="AssertionError: waits [1, 1, 1], expected [1, 2, 4]", wrong="        delay = base * attempt", wrong_fail="AssertionError: waits [0, 1, 2], expected [1, 2, 4]",
         why="The delay is set to the base on every round. It has to double with each attempt and stay below the limit."),
    dict(key="path-join", file="files/paths.py", issue="join('a/', '/b') gives 'a//b'. It should give 'a/b'.",
         before="    return left + '/' + right", after="    return left.rstrip('/') + '/' + right.lstrip('/')",
         fail="AssertionError: 'a//b' != 'a/b'", wrong="    return left.rstrip('/') + right", wrong_fail="AssertionError: 'ab' != 'a/b'",
         why="Both sides may bring a slash of their own, so they have to be cut before the one in the middle is put in."),
    dict(key="leap-year", file="dates/calendar.py", issue="days_in_february(1900) returns 29. The year 1900 was not a leap year.",
         before="    return 29 if year % 4 == 0 else 28", after="    return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28",
         fail="AssertionError: 29 != 28", wrong="    return 29 if year % 4 == 0 and year % 100 != 0 else 28", wrong_fail="AssertionError: days_in_february(2000): 28 != 29",
         why="A century is a leap year only when 400 divides it."),
    dict(key="unicode-slug", file="web/slug.py", issue="slug('Größe 42') returns 'gr-e-42'. Letters outside ASCII should be kept: 'größe-42'.",
         before="    return re.sub(r'[^a-z0-9]+', '-', text.lower()).strip('-')", after="    return re.sub(r'[\\W_]+', '-', text.lower()).strip('-')",
         fail="AssertionError: 'gr-e-42' != 'größe-42'", wrong="    return re.sub(r'[^a-z0-9 ]+', '', text.lower())", wrong_fail="AssertionError: 'gre 42' != 'größe-42'",
         why="The class names the ASCII letters only; a class of word characters keeps every letter."),
]


def source(task, line):
    return "def target(*args):\n%s\n        ...\n" % line


def steps(task, kind):
    """The (thought, command, output) steps of one attempt."""
    look = ("Let me read the code first.", "sed -n 1,40p %s" % task["file"], source(task, task["before"]))
    test = ("I will run the tests to see the failure.", "python -m pytest -q tests", "F.\n%s\n1 failed, 1 passed" % task["fail"])
    fix = (task["why"], "python - <<'PY'\nfrom pathlib import Path\np = Path(%r)\np.write_text(p.read_text().replace(%r, %r))\nPY" % (task["file"], task["before"], task["after"]), "")
    bad = ("I think this line is the cause.", "python - <<'PY'\nfrom pathlib import Path\np = Path(%r)\np.write_text(p.read_text().replace(%r, %r))\nPY" % (task["file"], task["before"], task["wrong"]), "")
    again = ("Now the tests again.", "python -m pytest -q tests", "..\n2 passed")
    still = ("Now the tests again.", "python -m pytest -q tests", "F.\n%s\n1 failed, 1 passed" % task["wrong_fail"])
    return {
        "quick": [look, fix, again],
        "careful": [look, test, fix, again],
        "tests first": [test, look, fix, again],
        "recovers": [look, bad, still, ("That was not enough: " + task["why"], fix[1].replace(repr(task["before"]), repr(task["wrong"])), ""), again],
        "wrong": [look, bad, still],
        "wrong again": [look, test, bad, still],
        "loops": [look, test, test, test, test],
        "aborted": [look],
    }[kind]


# Per task the four attempts, no two of them alike; the last group is alike in
# every reward.
PLAN = [
    ["quick", "careful", "wrong", "recovers"],
    ["careful", "wrong", "wrong again", "quick"],
    ["quick", "loops", "wrong", "careful"],
    ["careful", "aborted", "quick", "wrong"],
    ["quick", "wrong", "recovers", "careful"],
    ["quick", "careful", "tests first", "recovers"],
]

SOLVED = {"quick", "careful", "tests first", "recovers"}


def prompt(task):
    return "The repository is checked out in the current folder.\n\nIssue: %s\n\nRepair it so that the tests in tests/ pass." % task["issue"]


def native(task, index, kind):
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": prompt(task)}]
    for n, (thought, command, output) in enumerate(steps(task, kind)):
        call = {"id": "call_%d" % n, "type": "function", "function": {"name": "bash", "arguments": {"command": command}}}
        messages.append({"role": "assistant", "content": "", "reasoning": thought, "tool_calls": [call], "sampled": "sampled"})
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": output})
    if kind in SOLVED or kind.startswith("wrong"):
        call = {"id": "call_end", "type": "function", "function": {"name": "submit", "arguments": {"summary": task["why"] if kind in SOLVED else "Changed the line that looked wrong."}}}
        messages.append({"role": "assistant", "content": "", "tool_calls": [call], "sampled": "sampled"})
    else:
        messages.pop()
    row = {"turnpack_version": 1, "id": "%s/%d" % (task["key"], index), "group": task["key"], "index": index, "instance": task["key"],
           "messages": messages, "tools": TOOLS, "temperature": 1.0}
    if kind == "aborted":
        row.update(status="aborted", exit_status="cancelled")
    elif kind == "loops":
        row.update(status="truncated", exit_status="step_limit", outcome={"resolved": False, "reason": "step limit reached"})
    else:
        row.update(status="completed", exit_status="submitted", outcome={"resolved": kind in SOLVED})
    return row


def chat(task, index, kind):
    messages = [{"role": "system", "content": SYSTEM + " Write one command in a bash block per reply."}, {"role": "user", "content": prompt(task)}]
    for thought, command, output in steps(task, kind):
        messages.append({"role": "assistant", "content": "%s\n\n```bash\n%s\n```" % (thought, command)})
        messages.append({"role": "user", "content": "<returncode>0</returncode>\n<output>\n%s\n</output>" % output})
    messages.append({"role": "assistant", "content": "The tests tell that the work is done.\n\n```bash\necho SUBMIT\n```"})
    return {"instance_id": task["key"], "traj_id": "%s.%d" % (task["key"], index), "messages": messages,
            "resolved": kind in SOLVED, "exit_status": "submitted"}


def main(out):
    out = Path(out)
    out.mkdir(parents=True, exist_ok=True)
    with open(out / "1-toolcalls.jsonl", "w") as f:
        for task, kinds in zip(TASKS[:4], PLAN[:4]):
            for i, kind in enumerate(kinds):
                f.write(json.dumps(native(task, i, kind), ensure_ascii=False) + "\n")
    with open(out / "2-textactions.jsonl", "w") as f:
        for task, kinds in zip(TASKS[4:], PLAN[4:]):
            for i, kind in enumerate(kinds):
                f.write(json.dumps(chat(task, i, kind), ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
