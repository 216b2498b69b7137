"""Digests of the tools and of each turn's context of the public trajectories, from the raw files.

usage: contexts.py SHARED/data/trajectories [DIGITS]     prints one JSON object a trajectory

With 16 digits of each digest it is internal/plumb/verbs/testdata/contexts.jsonl, with
which a test compares the importers.

Written from the FORMAT.md pages, without the importers: nothing here is shared with
them. A context is the SHA-256 of a canonical JSON list of [role, text, [[name,
arguments], …]], arguments as canonical JSON text; null where the record does not tell
what the model saw. A tool is the SHA-256 of its definition as chat templates take it.
Standard library only.
"""
import gzip
import hashlib
import json
import sys
import zipfile
from pathlib import Path


class Number(str):
    """A number by its source literal."""


def parse(text):
    return json.loads(text, parse_int=Number, parse_float=Number, parse_constant=Number)


def text_json(s):
    short = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
    return '"' + "".join(short.get(c) or ("\\u%04x" % ord(c) if c < " " else c) for c in s) + '"'


def canonical(v):
    if isinstance(v, Number):
        return str(v)
    if isinstance(v, str):
        return text_json(v)
    if isinstance(v, dict):
        return "{" + ",".join(text_json(k) + ":" + canonical(v[k]) for k in sorted(v)) + "}"
    if isinstance(v, list):
        return "[" + ",".join(map(canonical, v)) + "]"
    return {None: "null", True: "true", False: "false"}[v]


def sha(s):
    return hashlib.sha256(s.encode("utf-8", "replace")).hexdigest()


def arguments(v):
    """Canonical text of arguments that are a value, or the text of one."""
    if isinstance(v, str) and not isinstance(v, Number):
        try:
            return canonical(parse(v))
        except ValueError:
            return v
    return canonical(v)


def text(content):
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    return "".join(p if isinstance(p, str) else p.get("text") or "" for p in content if isinstance(p, str) or p.get("type") in ("text", "input_text", "output_text"))


def call(c):
    f = c.get("function")
    if isinstance(f, dict):
        return [f["name"], arguments(f.get("arguments"))]
    return [f or c["name"], arguments(c.get("arguments"))]


def chat(m):
    role = "tool" if m["role"] == "function" else m["role"]
    calls = [call(c) for c in m.get("tool_calls") or []]
    if not calls and m.get("function_call"):
        calls = [call(m["function_call"])]
    return [role, text(m.get("content")), calls]


def tool(t):
    """A definition as templates take it."""
    if isinstance(t.get("function"), dict) or "name" not in t:
        return t
    f = {("parameters" if k == "input_schema" else k): v for k, v in t.items() if k not in ("type", "cache_control") and v is not None}
    return {"type": "function", "function": f}


class Run:
    """A trajectory: its messages, and of each turn what it saw."""

    def __init__(self, tools=()):
        self.messages, self.contexts, self.tools = [], [], [tool(t) for t in tools or ()]

    def add(self, m, sampled=False, context=...):
        if sampled:
            self.contexts.append([list(x) for x in self.messages] if context is ... else context)
        self.messages.append(m)

    def answer(self):
        seen = [None if c is None else sha(canonical([m for m in c if m[0] != "exit"])) for c in self.contexts]
        return {"tools_sha256": [sha(canonical(t)) for t in self.tools], "contexts_sha256": seen}


def replies(messages, tools=(), sampled=lambda m: m["role"] == "assistant"):
    r = Run(tools)
    for m in messages:
        r.add(chat(m), sampled(m))
    # Nothing was asked of a model that speaks first: its prompt is not recorded.
    if r.messages and r.contexts and r.messages[0][0] == "assistant" and r.contexts[0] == []:
        r.contexts = [None] * len(r.contexts)
    return r


# ---- formats ------------------------------------------------------------------------------------------------------
def adp(t):
    r = Run()
    for x in t["content"]:
        kind, source = x["class_"], x.get("source")
        if kind.endswith("_observation"):
            role = {"user": "user", "agent": "assistant"}.get(source, "tool")
            body = x.get("content") if kind == "text_observation" else x.get("html") or x.get("axtree")
            r.add([role, text(body), []])
        elif kind == "api_action":
            r.add(["assistant", x.get("description") or "", [[x["function"], arguments(x.get("kwargs") or {})]]], True)
        elif kind == "code_action":
            r.add(["assistant", x.get("description") or "", [[x["language"], canonical({"code": x["content"]})]]], True)
        else:
            r.add(["assistant", text(x["content"]), []], True)
    return [r]


def anthropic(x):
    q = x["request"]
    r = Run(q.get("tools"))
    if q.get("system"):
        r.add(["system", text(q["system"]), []])
    for m in q["messages"]:
        blocks = m["content"]
        if isinstance(blocks, str):
            r.add([m["role"], blocks, []])
            continue
        for b in blocks:
            if b["type"] == "tool_result":
                r.add(["tool", text(b.get("content")), []])
        said = text([b for b in blocks if b["type"] == "text"])
        calls = [[b["name"], arguments(b["input"])] for b in blocks if b["type"] == "tool_use"]
        if said or calls or any(b["type"] == "image" for b in blocks):
            r.add([m["role"], said, calls])
    r.add(["assistant", "", []], True)
    return [r]


def atif(t):
    r = Run(t["agent"].get("tool_definitions"))
    reset = False
    for s in t["steps"]:
        role = {"agent": "assistant"}.get(s["source"], s["source"])
        ours = role == "assistant" and not s.get("is_copied_context") and str(s.get("llm_call_count", 1)) != "0"
        calls = [[c["function_name"], arguments(c["arguments"])] for c in s.get("tool_calls") or []]
        m = [role, text(s.get("message")), calls]
        r.add(m, True, None) if ours and reset else r.add(m, ours)
        for o in (s.get("observation") or {}).get("results") or []:
            r.add(["tool", text(o.get("content")), []])
            if o.get("subagent_trajectory_ref") and role == "system" and not s.get("is_copied_context"):
                reset = True
    return [r]


def completion(x):
    """A call: its request is what the model saw."""
    q = x.get("request") or x
    defs = q.get("tools") or x.get("tools") or (x.get("kwargs") or {}).get("tools")
    r = Run(defs)
    for m in q["messages"]:
        r.add(chat(m))
    r.add(["assistant", "", []], True)
    return [r]


def mini(t):
    if isinstance(t, list):
        return [replies(t)]
    r = Run()
    for m in t["messages"]:
        if m.get("object") == "response":
            said = "".join(text(i["content"]) for i in m["output"] if i["type"] == "message")
            r.add(["assistant", said, [[i["name"], arguments(i["arguments"])] for i in m["output"] if i["type"] == "function_call"]], True)
        elif m.get("type") == "function_call_output":
            r.add(["tool", text(m["output"]), []])
        else:
            r.add(chat(m), m["role"] == "assistant")
    return [r]


def nemo(x):
    p = x["responses_create_params"]
    r = Run(p.get("tools"))
    if p.get("instructions"):
        r.add(["system", p["instructions"], []])

    def items(list_, sampled):
        """Runs of model items are turns; the others are messages."""
        turn, rank = None, 0
        for i in list_:
            kind = i.get("type") or "message"
            role = i.get("role", "assistant")
            level = {"reasoning": 0, "message": 1, "function_call": 2}.get(kind)
            if kind == "function_call_output" or kind == "message" and role != "assistant":
                turn = None
                r.add([role if kind == "message" else "tool", text(i["content"] if kind == "message" else i["output"]), []])
                continue
            if turn is None or level < rank or level == rank == 1:
                turn = ["assistant", "", []]
                r.add(turn, sampled)
            rank = level
            if kind == "message":
                turn[1] += text(i.get("content"))
            elif kind == "function_call":
                turn[2].append([i["name"], arguments(i["arguments"])])

    given = p.get("input")
    if isinstance(given, str):
        r.add(["user", given, []])
    else:
        items(given or [], False)
    # Some environments repeat the request before what was sampled; it was seen once.
    before = list(r.messages)
    out = x["response"]["output"]
    items(out, True)
    n = len(before)
    if n and r.messages[n:2 * n] == before and r.contexts and len(r.contexts[0]) >= 2 * n:
        r.contexts = [c[n:] for c in r.contexts]
    # Contexts were taken while turns were still growing: take them again.
    if r.messages and r.messages[0][0] == "assistant" and r.contexts and r.contexts[0] == []:
        r.contexts = [None] * len(r.contexts)
    return [r]


def inspect(log, samples):
    out = []
    for s in samples:
        attachments = s.get("attachments") or {}

        def whole(v):
            if isinstance(v, str) and not isinstance(v, Number):
                return attachments.get(v[len("attachment://"):], v) if v.startswith("attachment://") else v
            if isinstance(v, list):
                return [whole(x) for x in v]
            return {k: whole(x) for k, x in v.items()} if isinstance(v, dict) else v

        s = whole({k: v for k, v in s.items() if k != "attachments"})
        pool = s.get("message_pool") or (s.get("events_data") or {}).get("messages") or []
        events = [e for e in s.get("events") or [] if e["event"] == "model"]
        ours = {m.get("id") for m in s["messages"] if m["role"] == "assistant" and m.get("source", "generate") in ("generate", None)} - {None}

        def reply(e):
            choices = (e.get("output") or {}).get("choices") or [{}]
            return (choices[0].get("message") or {}).get("id")

        known = [e for e in events if reply(e) in ours]
        first = (known or events or [{}])[0]
        r = Run(first.get("tools"))
        byid = {reply(e): e for e in events}

        def failed(messages):
            """What the model was shown of an error is not recorded."""
            return any(x["role"] == "tool" and x.get("error") for x in messages)

        for k, m in enumerate(s["messages"]):
            sampled = m["role"] == "assistant" and m.get("source", "generate") in ("generate", None)
            e = byid.get(m.get("id")) if m.get("id") else None
            context = None if failed(s["messages"][:k]) else ...
            if sampled and e is not None:
                seen = list(e.get("input") or [])
                for a, b in e.get("input_refs") or []:
                    seen += pool[int(a):int(b)]
                if seen:
                    context = None if failed(seen) else [chat(x) for x in seen]
                if canonical([tool(t) for t in e.get("tools") or []]) != canonical(r.tools):
                    context = None
            r.add(chat(m), sampled, context)
        if r.messages and r.contexts and r.messages[0][0] == "assistant" and r.contexts[0] == []:
            r.contexts = [None if c == [] or c == r.messages[:len(c)] else c for c in r.contexts]
        out.append(r)
    return out


def openhands(history):
    """Events of V0: a reply is shown once all its calls have results, a result with it."""
    events = []
    for e in history:
        events += e if isinstance(e, list) else [e]
    r, entries, made, done, spoken = Run(), [], {}, set(), {}

    def seen():
        out = []
        for m, ids, answers in entries:
            if answers and answers not in made:
                out.append(m)
            elif answers:
                if made[answers][1] <= done:
                    if made[answers][0] is not None and made[answers][0] not in out_ids:
                        out_ids.append(made[answers][0])
                        out.append(entries[made[answers][0]][0])
                    out.append(m)
            elif not ids:
                out.append(m)
            elif not ids <= done and id(m) in spoken:
                out.append(spoken[id(m)])
        return out

    open_replies = {}
    for e in events:
        kind, action = e.get("observation"), e.get("action")
        meta = e.get("tool_call_metadata") or {}
        if kind is not None:
            if kind in ("null", "agent_state_changed", "recall"):
                continue
            answers = meta.get("tool_call_id")
            m = ["tool" if answers else "user", text(e.get("content")), []]
            r.add(m)
            entries.append((m, set(), answers))
            if answers:
                done.add(answers)
            continue
        if action in (None, "", "null", "change_agent_state", "condensation_request", "recall"):
            continue
        args = e.get("args") or e
        if action == "system":
            r.tools = r.tools or [tool(t) for t in args.get("tools") or []]
            m = ["system", text(args.get("content")), []]
        elif action == "message" and e.get("source") not in ("agent", "environment"):
            m = ["user", text(args.get("content")), []]
        elif meta.get("model_response"):
            response = meta["model_response"]
            if open_replies.get("last") == response["id"]:
                continue
            open_replies["last"] = response["id"]
            m = chat(response["choices"][0]["message"] | {"role": "assistant"})
            ids = {c["id"] for c in response["choices"][0]["message"].get("tool_calls") or []}
            out_ids = []
            r.add(m, True, seen())
            entries.append((m, ids, None))
            for i in ids:
                made[i] = (len(entries) - 1, ids)
            if action == "finish":
                thought = args.get("thought") or ""
                spoken[id(m)] = ["assistant", thought + "\n" + m[1] if thought and thought != m[1] else m[1], []]
            continue
        else:
            keys = ("content",) if action == "message" else ("thought", "final_thought")
            m = ["assistant", next((args[k] for k in keys if args.get(k)), ""), []]
            open_replies.pop("last", None)
            out_ids = []
            r.add(m, True, seen())
            entries.append((m, set(), None))
            continue
        r.add(m)
        entries.append((m, set(), None))
    if r.messages and r.contexts and r.messages[0][0] == "assistant":
        r.contexts = [None if not c else c for c in r.contexts]
    return r


def sdk(events):
    r, last = Run(), None
    for e in events:
        kind = e["kind"]
        if kind == "SystemPromptEvent":
            r.add(["system", text(e["system_prompt"]["text"]), []])
        elif kind == "MessageEvent":
            r.add(chat(e["llm_message"]), e["llm_message"]["role"] == "assistant")
        elif kind == "ActionEvent":
            c = e["tool_call"]
            f = c.get("function") or c
            if e["llm_response_id"] != last:
                last = e["llm_response_id"]
                r.add(["assistant", text(e["thought"]), []], True)
            r.messages[-1][2].append([f["name"], arguments(f["arguments"])])
        elif kind in ("ObservationEvent", "AgentErrorEvent"):
            o = e.get("observation")
            r.add(["tool", text(o["content"] if o else e.get("error")), []])
    if r.messages and r.contexts and r.messages[0][0] == "assistant" and r.contexts[0] == []:
        r.contexts = [None] * len(r.contexts)
    return [r]


def sharegpt(t):
    roles = {"human": "user", "gpt": "assistant"}
    list_ = [{"role": roles.get(m.get("from"), m.get("from")) or m["role"], "content": m["value"] if "value" in m else m["content"]} for m in t["conversations"]]
    if t.get("system"):
        list_.insert(0, {"role": "system", "content": t["system"]})
    return [replies(list_, t.get("tools"), lambda m: m["role"] == "assistant")]


def swe(t):
    agents = {m.get("agent") for m in t["history"]}
    main = "main" if "main" in agents else "primary" if "primary" in agents else t["history"][0].get("agent")
    r, steps, k, after = Run(), t.get("trajectory") or [], 0, None
    recorded = all("messages" in s or "query" in s for s in steps)
    mine = []
    for m in t["history"]:
        demo = m.get("is_demo") or m.get("message_type") == "demonstration"
        own = m.get("agent") == main
        sampled = m["role"] == "assistant" and not demo and own
        context = [list(x) for x in mine]
        if sampled and steps and recorded:
            s = steps[k]
            if s.get("query"):
                context = [chat(x) for x in s["query"]]
            elif after is not None:
                context = [chat(x) for x in after]
            after = s.get("messages")
        k += sampled
        r.add(chat(m), sampled, context)
        if own:
            mine.append(chat(m))
    return [r]


def nebius(t):
    r = Run()
    for m in t["trajectory"]:
        ours = m["role"] == "ai"
        r.add(["assistant" if ours else m["role"], (m.get("text") if m.get("text") is not None else m.get("system_prompt")) or "", []], ours and m.get("mask", True))
    return [r]


def chats(t):
    list_ = t.get("messages") or t.get("trajectory")
    tools = t.get("tools") or t.get("available_tools")
    return [replies(parse(list_) if isinstance(list_, str) else list_, parse(tools) if isinstance(tools, str) else tools)]


READERS = {
    "adp": adp, "anthropic-messages": anthropic, "atif": atif, "llm-completion-log": completion, "openai-wire": completion, "mini-swe-agent": mini,
    "nemo-gym": nemo, "openclaw-rl": lambda t: [replies(t["messages"])], "sharegpt": sharegpt, "swe-agent": swe, "swe-agent-nebius": nebius,
    "tau-bench": lambda t: [replies(t["traj"])], "openai-chat": chats, "openhands-output": lambda t: [openhands(t["history"])],
}


def read(path):
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8") as f:
        return f.read()


def records(path):
    """The values of a file: one, or one a line. Lines that are no JSON are none."""
    content = read(path)
    try:
        return [parse(content)]
    except ValueError:
        out = []
        for line in content.split("\n"):
            try:
                out += [parse(line)] if line.strip() else []
            except ValueError:
                pass
        return out


def runs(path):
    form = path.relative_to(ROOT).parts[0]
    if path.suffix == ".eval":
        with zipfile.ZipFile(path) as z:
            names = sorted(n for n in z.namelist() if n.startswith("samples/") and n.endswith(".json"))
            return inspect({}, [parse(z.read(n).decode()) for n in names])
    values = records(path)
    if form == "inspect-ai":
        return [r for log in values for r in inspect(log, log["samples"])]
    if form == "openhands-events":
        return [openhands(values[0])]
    if form == "openhands-sdk-events":
        return sdk(values)
    if form == "mini-swe-agent":
        return [r for v in values for r in mini(v)]
    flat = [x for v in values for x in (v if isinstance(v, list) else [v])]
    return [r for v in flat for r in READERS[form](v)]


def main():
    ids = {json.loads(line)["id"].rsplit("#", 1)[0] for line in read(ROOT / "expected.jsonl").splitlines()}
    for name in sorted(ids):
        for i, r in enumerate(runs(ROOT / name)):
            short = {key: [d and d[:DIGITS] for d in digests] for key, digests in r.answer().items()}
            print(json.dumps({"id": f"{name}#{i}"} | short))


if __name__ == "__main__":
    ROOT, DIGITS = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else None
    main()
