"""Compares `plumb render` with transformers on random conversations.

usage: diff_conversations.py PLUMB COUNT TEMPLATES KIT [SEED]

Each case is one of the real templates in TEMPLATES over a conversation that its
authors may not have had in mind: roles in any order, reasoning, tool calls with
odd arguments, content parts, control tokens as text. KIT, the templates kit, holds
the renderer and the template variables in use. Text, kind of error, raised message
and generation spans are compared. A character of its own marks most of the recorded
texts, so that where it shows up must be a span of its field and, for replies only,
may be sampled.
"""
import gzip
import json
import random
import sys
from pathlib import Path

from plumbing import ask, report

PLUMB, COUNT, TEMPLATES, KIT = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]), Path(sys.argv[4])
sys.path.insert(0, str(KIT))
import oracle  # noqa: E402

rand = random.Random(int(sys.argv[5]) if len(sys.argv) > 5 else 1)
FIRST_MARK = 0x20000
TEXTS = ["hello", "", "  pad ", "\n\nx\n", "<think>\nr\n</think>\n\nans", "<think>open", "</think>x", "<tool_call>{}</tool_call>", "<|im_end|>", "[TOOL_CALLS]", '{"a": 1}', "é漢😀", "it's \"q\"", "<b>&amp;</b>", "\\n\\", "a\r\nb", "{{ x }}",
         "\u2028\u00a0", "\x00\x1b", "/no_think", "/think", "<tool_response>\nq\n</tool_response>", "</s>", "<|tool_call>"]
SCALARS = [None, True, False, 0, 1, -1, 1.0, 1.5, 1e22, 1e-7, 2**70]


def tool(name, **more):
    return {"type": "function", "function": {"name": name} | more}


TOOLS = [tool("bash", description="Run.", parameters={"type": "object", "properties": {"command": {"type": "string", "description": "c"}, "n": {"type": ["integer", "null"], "default": 3, "enum": [1, 2]}}, "required": ["command"]}),
         tool("edit", description="<b>'x'</b>\né", parameters={"type": "object", "properties": {}}), tool("bare"),
         tool("list", description="d", parameters={"type": "object", "properties": {"l": {"type": "array", "items": {"type": "string"}}, "o": {"type": "object", "properties": {"k": {"type": "number"}}}}}, **{"return": {"type": "string"}})]


class Conversation:
    """Messages whose recorded texts carry marks."""

    def __init__(self):
        self.marks = 0
        self.messages = [self.message("system")] if rand.random() < 0.6 else []
        for _ in range(rand.randint(0, 4)):
            self.messages.append(self.message("user"))
            for _ in range(rand.choice([0, 1, 1, 1, 2])):
                self.messages.append(self.message("assistant"))
                self.messages += [self.message("tool") for _ in self.messages[-1].get("tool_calls", [])]
        if rand.random() < 0.15:
            self.messages.insert(rand.randint(0, len(self.messages)), self.message(rand.choice(["system", "user", "assistant", "tool", "developer", "critic"])))

    def text(self):
        s = "".join(rand.choice(TEXTS) for _ in range(rand.choice([0, 1, 1, 2, 3])))
        if rand.random() < 0.2:
            return s
        self.marks += 1
        at = rand.randint(0, len(s))
        return s[:at] + chr(FIRST_MARK + self.marks) + s[at:]

    def argument(self, depth=0):
        kind = rand.random()
        if depth < 2 and kind < 0.15:
            return {rand.choice(["a", "b", "c d"]): self.argument(depth + 1) for _ in range(rand.randint(0, 2))}
        if depth < 2 and kind < 0.25:
            return [self.argument(depth + 1) for _ in range(rand.randint(0, 2))]
        return self.text() if kind < 0.7 else rand.choice(SCALARS)

    def call(self):
        arguments = {rand.choice(["path", "cmd", "n", "x y", "é"]): self.argument() for _ in range(rand.randint(0, 3))}
        function = {"name": rand.choice(["bash", "edit"]), "arguments": arguments if rand.random() < 0.8 else json.dumps(arguments, ensure_ascii=False)}
        call = {"type": "function", "function": function} if rand.random() < 0.93 else function
        return {"id": rand.choice(["call_1", "abc123def"])} | call if rand.random() < 0.8 else call

    def message(self, role):
        m, kind = {"role": role}, rand.random()
        if kind < 0.86:
            m["content"] = self.text()
        elif kind < 0.91:
            m["content"] = None
        elif kind < 0.97:
            m["content"] = [{"type": "text", "text": self.text()} if rand.random() < 0.85 else {"type": "image"} for _ in range(rand.randint(0, 3))]
        if role == "assistant" and rand.random() < 0.35:
            m[rand.choice(["reasoning_content", "reasoning_content", "thinking", "reasoning"])] = self.text()
        if role == "assistant" and rand.random() < 0.4:
            m["tool_calls"] = [self.call() for _ in range(rand.choice([0, 1, 1, 1, 2, 3]))]
        if role == "tool":
            m |= {k: v for k, v in (("tool_call_id", "call_1"), ("name", "bash")) if rand.random() < 0.7}
        return m


def owners(value, path=""):
    """Mark → path of the text that holds it."""
    if isinstance(value, str):
        return {c: path for c in value if ord(c) >= FIRST_MARK}
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return {c: p for k, v in items for c, p in owners(v, f"{path}/{oracle.esc(k)}").items()}


def differences(case, answer, source):
    setting = {k: case[k] for k in ("continue_final_message", "add_generation_prompt", "drop_null_keys", "kwargs")}
    data = oracle.prepare(case, setting)
    messages = data["messages"]
    marks = owners(messages)
    generation = bool(oracle.GEN.search(source)) and not case["continue_final_message"]
    try:
        text, spans = oracle.render(source, data, setting, generation)
    except Exception as e:  # every error of a template has a kind
        want, got = oracle.error_of(e), answer.get("error") or {}
        if got.get("kind") != want["kind"] or want["kind"] == "raise_exception" and got["message"] != want["message"]:
            yield "error", want, answer
        return
    if answer.get("text") != text:
        yield "text", text, answer.get("text", answer.get("error"))
        return
    offsets = [0]
    for c in text:
        offsets.append(offsets[-1] + len(c.encode()))
    if generation and sorted([offsets[a], offsets[b]] for a, b in spans) != sorted(answer["generation_spans"]):
        yield "generation spans", spans, answer["generation_spans"]
    covered = {at: f["path"] for f in answer["fields"] + answer.get("other_fields", []) for s in f["spans"] for at in range(s[0], s[1])}
    for at, c in zip(offsets, text):
        if c not in marks:
            continue
        if covered.get(at) != "/messages" + marks[c]:
            yield "field", marks[c], covered.get(at)
        role = messages[int(marks[c].split("/")[1])]["role"]
        if role != "assistant" and any(a <= at < b for a, b in answer.get("sampled") or []):
            yield "sampled", role, marks[c]


def main():
    sources = {p.stem: p.read_bytes().decode() for p in sorted(TEMPLATES.glob("*.jinja"))}
    with gzip.open(KIT / "goldens.jsonl.gz", "rt", encoding="utf-8") as f:
        variables = [(row["template"], row["kwargs"]) for row in map(json.loads, f)]
    cases = []
    for i in range(COUNT):
        template, kwargs = rand.choice(variables)
        unfinished = rand.random() < 0.08
        case = {"id": i, "template": template, "messages": Conversation().messages, "add_generation_prompt": not unfinished and rand.random() < 0.5, "continue_final_message": unfinished,
                "drop_null_keys": rand.random() < 0.8, "kwargs": kwargs}
        cases.append(case | ({"tools": rand.sample(TOOLS, rand.randint(0, 4))} if rand.random() < 0.45 else {}))
    bad = 0
    for case, answer in zip(cases, ask(PLUMB, "render", cases, "--templates", TEMPLATES, "--now", "2026-01-15T12:00:00")):
        found = list(differences(case, answer, sources[case["template"]]))
        bad += bool(found)
        if found and bad <= 3:
            print(json.dumps(case), "\n", *found[0], sep="\n ")
    report(COUNT, bad)


main()
