"""Compares what `plumb encode` trains with transformers, and its modes with each other.

usage: diff_turns.py PLUMB COUNT TEMPLATES TOKENIZER_JSON [SEED]

COUNT random rollouts for each template in TEMPLATES, whose control tokens are added to
the tokenizer (a byte-level one): messages in odd order, calls in parallel, results that
miss, text in parts, blank texts, replies that a limit cut, contexts with notes and
shortened messages. A mark of its message stands in most texts. Held against them are

 - the prompt of each row per step: transformers' text of the context, and its ids, cut
   at most where what an earlier turn sampled stands;
 - a reply of text alone: its content, and the stop unless a limit cut it;
 - merged rows: up to each turn the row of that turn alone;
 - sources: marks are of their message; masks, flags and turns: of one another;
 - the report: counted anew from the rows;
 - the same rollout with recorded ids, replies spelled character by character or prompts
   in one piece among them: trained as recorded, with their log probabilities, each byte
   flagged as in the rendered reply, each prompt attributed.
"""
import collections
import json
import random
import re
import sys
import tempfile
from pathlib import Path

import transformers
from transformers.utils import chat_template_utils

from diff_rollouts import Clock
from model_folder import ModelFolder, control_tokens
from plumbing import ask, report

PLUMB, COUNT, TEMPLATES, TOKENIZER = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]), sys.argv[4]
SEED = sys.argv[5] if len(sys.argv) > 5 else "1"
TEXTS = ["hello", "", "  pad ", "\n\nx\n", "look at it", " ", "\n", "it's \"q\"", "<b>&amp;</b>", "é漢😀", "a\r\nb", "x = 1\n\n", "{{ x }}", "{\"a\": 1}"]
SAMPLED, SPECIAL, STOP = 1, 16, 32
MARK = re.compile(rb"QZ(\d+)QZ")


class Rollout:
    """One line of input."""

    def __init__(self, name):
        self.r, self.messages = random.Random(f"{SEED} {name}"), []
        tools = self.r.random() < .6
        if self.r.random() < .5:
            self.add("system")
        if self.r.random() < .95:
            self.add("user")
        for _ in range(self.r.randint(1, 5)):
            calls = self.add("assistant", self.r.choice([0, 0, 0, 1, 1, 2, 3]) if tools else 0).get("tool_calls", [])
            for c in self.r.sample(calls, len(calls)):
                if self.r.random() < .9:
                    self.add("tool")["tool_call_id"] = c["id"]
            if not calls or self.r.random() < .15:
                self.add("user")
            if self.r.random() < .05:
                self.add(self.r.choice(["system", "developer", "tool", "user", "assistant"]))
        known = {"type": "function", "function": {"name": "bash", "description": "Run.", "parameters": {"type": "object", "properties": {"command": {"type": "string", "description": "c"}}}}}
        self.line = {"id": name, "metadata": {"engine": "transformers"}, "messages": self.messages, "tools": [known] * tools, "turns": [self.turn(k) for k, m in enumerate(self.messages) if m.get("sampled") == "sampled"]}

    def text(self, most=3):
        t = "".join(self.r.choice(TEXTS) for _ in range(self.r.randint(0, most)))
        at = self.r.randint(0, len(t))
        return t if self.r.random() < .25 else f"{t[:at]}QZ{len(self.messages)}QZ{t[at:]}"

    def add(self, role, calls=0):
        m = {"role": role, "content": self.r.choice([self.text(), self.text(), self.text(), self.text(), None, [{"type": "text", "text": self.text()} for _ in range(self.r.randint(0, 2))]])}
        if role == "assistant":
            m["sampled"] = "sampled" if self.r.random() < .9 else "prefilled"
            if self.r.random() < .35:
                m["reasoning_content"] = self.text() or "so"
            if calls:
                m["tool_calls"] = [{"id": f"call{len(self.messages):04}{k}", "type": "function", "function": {"name": "bash", "arguments": {a: self.text(1) for a in self.r.sample(["command", "n"], self.r.randint(0, 2))}}} for k in range(calls)]
        self.messages.append(m)
        return m

    def turn(self, k):
        t = {"message": k, "finish_reason": self.r.choice(["stop", "stop", "length", "tool_calls"])}
        if k > 2 and self.r.random() < .2:
            at = self.r.randint(1, k - 1)
            note = {"role": "user", "content": "left out"} if self.r.random() < .5 else {**self.messages[at], "content": "shortened"}
            t["context"] = [{"from": 0, "to": at}, {"from": at, "to": at + 1, "message": {a: b for a, b in note.items() if a != "sampled"}}, {"from": at + 1, "to": k}]
        return t


def shown(line, turn):
    parts = turn.get("context", [{"from": 0, "to": turn["message"]}])
    return [m for p in parts for m in ([p["message"]] if "message" in p else line["messages"][p["from"]:p["to"]])]


def text_of(m):
    c = m.get("content") or ""
    return c if isinstance(c, str) else "".join(p["text"] for p in c)


class Model:
    """A template beside the tokenizer."""

    def __init__(self, path, sources):
        self.folder = ModelFolder(path, TOKENIZER, control_tokens(*sources))
        self.tok = transformers.PreTrainedTokenizerFast(tokenizer_file=str(self.folder.path / "tokenizer.json"))
        bytes_of = [*range(33, 127), *range(161, 173), *range(174, 256)]
        rest = [b for b in range(256) if b not in bytes_of]
        self.byte = {chr(b): b for b in bytes_of} | {chr(256 + n): b for n, b in enumerate(rest)}
        self.added = {i: a.content for i, a in self.tok.backend_tokenizer.get_added_tokens_decoder().items()}

    def spelled(self, i):
        return self.added[i].encode() if i in self.added else bytes(self.byte[c] for c in self.tok.convert_ids_to_tokens(i))

    def text(self, ids):
        return b"".join(map(self.spelled, ids)).decode("utf-8", "replace")

    def ids(self, text):
        return self.tok.encode(text, add_special_tokens=False)

    def prompts(self, line, turn):
        """The context in the forms that the encoder may choose."""
        def recorded(m):  # of one part or none the encoder keeps the text
            return m["content"] if isinstance(m["content"], list) and len(m["content"]) > 1 else text_of(m)

        for content in (text_of, lambda m: [{"type": "text", "text": text_of(m)}], recorded):
            for arguments in (dict, json.dumps):
                messages = []
                for m in shown(line, turn):
                    m = {k: v for k, v in m.items() if k != "sampled"} | {"content": content(m)}
                    if "tool_calls" in m:
                        m["tool_calls"] = [c | {"function": c["function"] | {"arguments": arguments(c["function"]["arguments"])}} for c in m["tool_calls"]]
                    messages.append(m)
                try:
                    yield chat_template_utils.render_jinja_template(conversations=[messages], tools=line["tools"] or None, chat_template=self.folder.template, add_generation_prompt=True, bos_token=self.folder.bos, eos_token=self.folder.eos)[0][0]
                except Exception:
                    continue

    def encode(self, lines, mode):
        return ask(PLUMB, "encode", lines, "--model", self.folder.path, "--mode", mode)


def runs(rows):
    """Turn → row, first and last token of what it trains."""
    found = {}
    for row in rows:
        for k, t in enumerate(row["turn"]):
            if t >= 0:
                found[t] = (row, found[t][1] if t in found else k, k + 1)
    return found


def columns(model, rows):
    """Faults of the columns of rows."""
    seen = collections.Counter()
    for row in rows:
        raw, at = b"", []
        for k, (i, s, t, f, mask) in enumerate(zip(row["input_ids"], row["source"], row["turn"], row["flags"], row["loss_mask"], strict=True)):
            at.append(len(raw))
            raw += model.spelled(i)
            seen[t] += t >= 0 and (k == 0 or row["turn"][k - 1] != t)
            if not (bool(f & SAMPLED) == (t >= 0) and bool(mask) == (t >= 0 and k > 0) and bool(f & SPECIAL) == (i in model.added) and f & SAMPLED >= f // STOP & 1):
                yield "mask, turn and flags", k, s, t, f, mask
        for m in MARK.finditer(raw):
            if any(row["source"][k] != int(m[1]) for k, a in enumerate(at) if m.start() <= a < m.end()):
                yield "source of", m[0]
    if any(n > 1 for t, n in seen.items() if t >= 0):
        yield "trained twice", seen


def counted(line, rows, said):
    """Faults of the report."""
    trained = sum(sum(r["loss_mask"]) for r in rows)
    first = sum(r["flags"][0] & SAMPLED for r in rows)  # nothing predicts it
    turns = len(runs(rows))
    want = {"turns": len(line["turns"]), "rows": len(rows), "sampled_tokens": trained + first, "trained_tokens": trained, "dropped_tokens": first, "row_tokens": sum(len(r["input_ids"]) for r in rows),
            "empty_turns": len(line["turns"]) - turns, "stop_tokens": sum(f // STOP & 1 for r in rows for f in r["flags"]), "stop_tokens_lost": 0}
    yield from ((k, v, said[k]) for k, v in want.items() if said[k] != v)


def spells(model, ids, prompt, earlier):
    """Whether ids are those of a prompt, cut at most where what earlier turns sampled stands."""
    places = sorted({0, len(prompt)} | {at for text in earlier if text for m in re.finditer(re.escape(text), prompt) for at in m.span()})
    reached = {(0, 0)}  # bytes and ids
    for at in places:
        for n in [n for k, n in reached if k == at]:
            for to in places[places.index(at) + 1:]:
                piece = model.ids(prompt[at:to])
                if ids[n:n + len(piece)] == piece:
                    reached.add((to, n + len(piece)))
    return (len(prompt), len(ids)) in reached


def per_step(model, line, rows):
    earlier = []
    for t, (row, first, last) in sorted(runs(rows).items()):
        turn = line["turns"][t]
        m, prompt, reply = line["messages"][turn["message"]], model.text(row["input_ids"][:first]), model.text(row["input_ids"][first:last])
        if prompt not in list(model.prompts(line, turn)):
            yield "prompt", t, prompt[-300:]
        if not spells(model, row["input_ids"][:first], prompt, earlier):
            yield "prompt ids", t, prompt[-300:]
        earlier.append(reply)
        if not m.get("reasoning_content") and not m.get("tool_calls") and (text_of(m) not in reply or (row["flags"][last - 1] & STOP == 0) != (turn["finish_reason"] == "length")):
            yield "reply", t, reply
        if row["input_ids"][first:last] != model.ids(reply):
            yield "reply ids", t, reply


def merged(alone, rows):
    for t, (row, first, last) in runs(rows).items():
        if t not in alone or row["input_ids"][:last] != alone[t][0]["input_ids"][:alone[t][2]]:
            yield "merged row", t


def record(model, r, line, alone):
    """The line with recorded ids."""
    turns = []
    for t, turn in enumerate(line["turns"]):
        turns.append(dict(turn))
        if t in alone and alone[t][1] and r.random() < .8:
            row, first, last = alone[t]
            output = [x for i in row["input_ids"][first:last] for x in ([i] if i in model.added or r.random() < .8 or "\ufffd" in model.text([i]) else sum(map(model.ids, model.text([i])), []))]
            prompt, text = row["input_ids"][:first], model.text(row["input_ids"][:first])
            if r.random() < .5 and "\ufffd" not in text:  # as an engine reads the history again
                prompt = model.ids(text)
            turns[-1] |= {"prompt_ids": prompt, "output_ids": output, "logprobs": [-k / 64 for k in range(len(output))]}
    return line | {"turns": turns}


def recorded(model, line, alone, rows):
    found = runs(rows)
    by_byte = lambda row, first, last: [f & ~SPECIAL for i, f in zip(row["input_ids"][first:last], row["flags"][first:last]) for _ in model.spelled(i)]
    for t, turn in enumerate(line["turns"]):
        if "output_ids" not in turn:
            continue
        row, first, last = found[t]
        if (row["input_ids"][:first], row["input_ids"][first:last], row["logprobs"][first:last]) != (turn["prompt_ids"], turn["output_ids"], turn["logprobs"]) or any(row["logprobs"][:first]):
            yield "recorded", t
        if any(a & b != b for a, b in zip(by_byte(*alone[t]), by_byte(row, first, last), strict=True)):
            yield "flags of recorded", t


def main():
    chat_template_utils.datetime = Clock
    sources = {p.stem: p.read_bytes().decode() for p in sorted(TEMPLATES.glob("*.jinja"))}
    total = bad = 0
    with tempfile.TemporaryDirectory() as tmp:
        model = Model(tmp, sources.values())
        for name, source in sources.items():
            model.folder.put(source)
            made = [Rollout(f"{name} {k}") for k in range(COUNT)]
            lines = [m.line for m in made]
            answers = {mode: model.encode(lines, mode) for mode in ("perstep", "merged", "whole")}
            alone = [runs(a.get("rows", [])) for a in answers["perstep"]]
            second = [record(model, m.r, m.line, a) for m, a in zip(made, alone)]
            again = model.encode(second, "perstep")
            for k, line in enumerate(lines):
                total += 1
                step, joined, whole = (answers[mode][k] for mode in ("perstep", "merged", "whole"))
                faults = [(a["error"],) for a in (step, joined, whole) if a.get("error", {}).get("kind", "template") != "template"]
                for a in (step, joined, whole):
                    if "rows" in a:
                        faults += [*columns(model, a["rows"]), *counted(line, a["rows"], a["report"])]
                if "rows" in step:
                    faults += [*per_step(model, line, step["rows"]), *merged(alone[k], joined["rows"]), *recorded(model, second[k], alone[k], again[k]["rows"])]
                    if again[k]["report"]["unattributed_turns"]:
                        faults.append(("unattributed", again[k]["report"]["unattributed_turns"]))
                bad += bool(faults)
                if faults and bad <= 5:
                    print(json.dumps(line, ensure_ascii=False), "\n", *faults[0])
    report(total, bad)


main()
