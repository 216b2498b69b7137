"""Digests of the tools and of each turn's context of the fixtures of clients, frameworks and traces.

usage: sessions.py internal/plumb/verbs/testdata/sessions     prints one JSON object a rollout

The output is internal/plumb/verbs/testdata/sessions.jsonl, with which a test compares the
importers. Written from the source of each format (docs/formats.md names it), without the
importers: nothing here is shared with them. Contexts and tools are digested as
contexts.py does. Standard library only.
"""
import json
import sys
from pathlib import Path

from contexts import arguments, canonical, parse, sha

LOST = object()  # what later turns saw is not known


def said(role, text="", calls=()):
    return [role, text, [list(c) for c in calls]]


def plain(v):
    return v if isinstance(v, str) and type(v) is str else canonical(v)


def turns(events):
    """Contexts of the plain history: a reply is ("reply", message), LOST stands where it is lost."""
    history, lost, out = [], False, []
    for e in events:
        if e is LOST:
            lost = True
        elif e[0] == "reply":
            out.append(None if lost else list(history))
            history.append(e[1])
        else:
            history.append(e)
    return out


def texts(parts, key="text"):
    return "".join(p if type(p) is str else p[key] for p in parts)


def pydantic(v):
    events = []
    for m in v:
        if m.get("instructions"):
            events.append(said("system", m["instructions"]))
        if m["kind"] == "response":
            calls = [(p["tool_name"], arguments(p["args"])) for p in m["parts"] if p["part_kind"] == "tool-call"]
            events.append(("reply", said("assistant", "\n\n".join(p["content"] for p in m["parts"] if p["part_kind"] == "text"), calls)))
            continue
        for p in m["parts"]:
            c = p["content"]
            if p["part_kind"] == "system-prompt":
                events.append(said("system", c))
            elif p["part_kind"] == "user-prompt":
                events.append(said("user", c if type(c) is str else texts(c)))
            elif p["part_kind"] == "tool-return":
                events.append(said("tool", plain(c)))
            else:
                events += [said("tool" if p.get("tool_name") else "user", plain(c)), LOST]
    return turns(events)


def langchain_message(m):
    if "lc" in m:
        kind, d = m["id"][-1], m["kwargs"]
    else:
        kind, d = m["type"], m.get("data", m)
    c = d["content"]
    text = c if type(c) is str else "".join(x if type(x) is str else x["text"] for x in c if type(x) is str or x["type"] == "text")
    calls = [(x["name"], arguments(x["args"])) for x in d.get("tool_calls") or []]
    role = {"human": "user", "HumanMessage": "user", "ai": "assistant", "AIMessage": "assistant", "system": "system", "SystemMessage": "system", "tool": "tool", "ToolMessage": "tool"}[kind]
    return said(role, text, calls)


def langchain(v):
    return turns(("reply", m) if m[0] == "assistant" else m for m in map(langchain_message, v))


def output(answer):
    return answer["output"] if list(answer) == ["output"] and type(answer["output"]) is str else canonical(answer)


def spaced(v):
    """JSON as Python writes it."""
    if isinstance(v, dict):
        return "{" + ", ".join(json.dumps(k, ensure_ascii=False) + ": " + spaced(x) for k, x in v.items()) + "}"
    return "[" + ", ".join(map(spaced, v)) + "]" if isinstance(v, list) else canonical(v)


def content_parts(role, parts, shown=output):
    """A content of Gemini: the results in it, and what it says."""
    results, text, calls = [], None, []
    for p in parts:
        if "text" in p and not p.get("thought"):
            text = (text or "") + p["text"]
        f = p.get("functionCall") or p.get("function_call")
        if f:
            calls.append((f["name"], arguments(f.get("args") or {})))
        r = p.get("functionResponse") or p.get("function_response")
        if r:
            results.append(said("tool", shown(r["response"])))
    if role == "model":
        return results + [("reply", said("assistant", text or "", calls))]
    return results + ([said("user", text)] if text is not None else [])


def gemini_contents(v):
    events = [said("system", texts(v["systemInstruction"]["parts"]))] if "systemInstruction" in v else []
    for c in v["contents"]:
        events += content_parts(c["role"], c["parts"])
    tools = [{"type": "function", "function": {k: f[k] for k in ("name", "description", "parameters") if k in f}} for t in v.get("tools", []) for f in t["functionDeclarations"]]
    return tools, turns(events)


def gemini_cli(records):
    order, byid = [], {}
    for r in records:
        if "$rewindTo" in r:
            at = order.index(r["$rewindTo"]) if r["$rewindTo"] in order else 0
            del order[at:]
        for m in [r] if "type" in r else r.get("messages", []):
            if m["id"] not in order:
                order.append(m["id"])
            byid[m["id"]] = m
    events = []
    for m in (byid[i] for i in order):
        c = m["content"]
        text = c if type(c) is str else texts(c)
        if m["type"] == "user":
            events.append(said("user", text))
        elif m["type"] == "gemini":
            calls = m.get("toolCalls") or []
            events.append(("reply", said("assistant", text, [(x["name"], arguments(x["args"])) for x in calls])))
            for x in calls:
                events += content_parts("user", x["result"])
    return turns(events)


def bedrock(v):
    events = [said("system", "".join(x["text"] for x in v["system"] if "text" in x))]
    for m in v["messages"]:
        text, calls = None, []
        for b in m["content"]:
            if "text" in b:
                text = (text or "") + b["text"]
            if "toolUse" in b:
                calls.append((b["toolUse"]["name"], arguments(b["toolUse"]["input"])))
            if "toolResult" in b:
                events.append(said("tool", "\n".join(x["text"] if "text" in x else canonical(x["json"]) for x in b["toolResult"]["content"])))
        if m["role"] == "assistant":
            events.append(("reply", said("assistant", text or "", calls)))
        elif text is not None:
            events.append(said("user", text))
    tools = [{"type": "function", "function": {"name": t["toolSpec"]["name"], "parameters": t["toolSpec"]["inputSchema"]["json"]}} for t in v["toolConfig"]["tools"]]
    return tools, turns(events)


def vercel_ui(v):
    events = []
    for m in v:
        if m["role"] != "assistant":
            events.append(said(m["role"], texts(p for p in m["parts"] if p["type"] == "text")))
            continue
        steps = [[]]
        for p in m["parts"]:
            if p["type"] == "step-start":
                steps.append([])
            else:
                steps[-1].append(p)
        for step in filter(None, steps):
            tools = [p for p in step if p["type"].startswith("tool-")]
            events.append(("reply", said("assistant", texts(p for p in step if p["type"] == "text"), [(p["type"][5:], arguments(p["input"])) for p in tools])))
            events += [said("tool", plain(p["output"])) for p in tools if "output" in p]
    return turns(events)


def vercel_model(v):
    events = [said("system", v["system"])]
    for m in v["messages"]:
        c = m["content"]
        parts = [{"type": "text", "text": c}] if type(c) is str else c
        if m["role"] == "tool":
            events += [said("tool", plain(p["output"]["value"])) for p in parts]
            continue
        x = said(m["role"], texts(p for p in parts if p["type"] == "text"), [(p["toolName"], arguments(p["input"])) for p in parts if p["type"] == "tool-call"])
        events.append(("reply", x) if m["role"] == "assistant" else x)
    return turns(events)


def goose(messages):
    events = []
    for m in messages:
        calls = [(c["toolCall"]["value"]["name"], arguments(c["toolCall"]["value"]["arguments"])) for c in m["content"] if c["type"] == "toolRequest"]
        text = [c["text"] for c in m["content"] if c["type"] == "text"]
        for c in m["content"]:
            if c["type"] == "toolResponse":
                r = c["toolResult"]["value"]
                r = r["content"] if isinstance(r, dict) else r
                events.append(said("tool", "\n".join(x["text"] for x in r if "assistant" in x.get("annotations", {}).get("audience", ["assistant"]))))
        if m["role"] == "assistant":
            events.append(("reply", said("assistant", "".join(text), calls)))
        elif text:
            events.append(said("user", "".join(text)))
    return turns(events)


def opencode(v):
    events = []
    for m in v["messages"]:
        if m["info"]["role"] == "user":
            events.append(said("user", texts(p for p in m["parts"] if p["type"] == "text")))
            continue
        step = []
        for p in m["parts"]:
            if p["type"] in ("text", "tool"):
                step.append(p)
            if p["type"] == "step-finish":
                tools = [x for x in step if x["type"] == "tool"]
                events.append(("reply", said("assistant", texts(x for x in step if x["type"] == "text"), [(x["tool"], arguments(x["state"]["input"])) for x in tools])))
                events += [said("tool", x["state"]["output"]) for x in tools]
                step = []
    return turns(events)


def cline(v):
    events = []
    for m in v:
        c = m["content"]
        blocks = [{"type": "text", "text": c}] if type(c) is str else c
        events += [said("tool", b["content"]) for b in blocks if b["type"] == "tool_result"]
        x = said(m["role"], texts(b for b in blocks if b["type"] == "text"), [(b["name"], arguments(b["input"])) for b in blocks if b["type"] == "tool_use"])
        if m["role"] == "assistant":
            events.append(("reply", x))
        elif x[1]:
            events.append(x)
    return turns(events)


def openclaw(records):
    byid = {r["id"]: r for r in records}
    out = []

    def shown(r):
        m = r.get("message")
        if r["type"] != "message" or m["role"] == "assistant" and m["stopReason"] in ("error", "aborted"):
            return []
        c = m["content"]
        text = c if type(c) is str else texts(b for b in c if b["type"] == "text")
        calls = [(b["name"], arguments(b["arguments"])) for b in c if type(b) is dict and b["type"] == "toolCall"]
        return [said({"toolResult": "tool"}.get(m["role"], m["role"]), text, calls)]

    for r in records:
        if r["type"] != "message" or r["message"]["role"] != "assistant" or not shown(r):
            continue
        path, x = [], r["parentId"]
        while x:
            path.insert(0, byid[x])
            x = byid[x]["parentId"]
        out.append(None if any(p["type"] == "compaction" for p in path) else [m for p in path for m in shown(p)])
    return out


def qwen(records):
    byid = {r["uuid"]: r for r in records}
    out = []

    def shown(r):
        contents = r["systemPayload"]["compressedHistory"] if r.get("subtype") == "chat_compression" else [r["message"]] if "message" in r else []
        return [m[1] if m[0] == "reply" else m for c in contents for m in content_parts(c["role"], c["parts"])]

    for r in records:
        if r["type"] != "assistant":
            continue
        path, x = [], r["parentUuid"]
        while x:
            path.insert(0, byid[x])
            x = None if byid[x].get("subtype") == "chat_compression" else byid[x]["parentUuid"]
        out.append([m for p in path for m in shown(p)])
    return out


def kimi(records):
    events, kept = [], False
    for r in records:
        if r["role"] == "_system_prompt":
            events.append(said("system", r["content"]))
        if r["role"] == "_usage":
            kept = False
        if r["role"].startswith("_"):
            continue
        c = r["content"]
        text = c if type(c) is str else "".join(p["text"] for p in c if p["type"] == "text")
        kept = kept or text.startswith("<system>Previous context has been compacted")
        x = said(r["role"], text, [(t["function"]["name"], arguments(t["function"]["arguments"])) for t in r.get("tool_calls", [])])
        if r["role"] == "user" and events and events[-1][0] == "user":
            events[-1][1] += text
        else:
            events.append(("reply", x) if r["role"] == "assistant" and not kept else x)
    return turns(events)


def copilot(records):
    events = []
    for r in records:
        d = r["data"]
        if r["type"] == "system.message":
            events.append(said("system", d["content"]))
        elif r["type"] == "user.message":
            events.append(said("user", d["transformedContent"]))
        elif r["type"] == "assistant.message":
            events.append(("reply", said("assistant", d["content"], [(t["name"], arguments(t["arguments"])) for t in d["toolRequests"]])))
        elif r["type"] == "tool.execution_complete":
            events.append(said("tool", d["result"]["content"]))
        elif r["type"] == "session.truncation":
            events.append(LOST)
    return turns(events)


def trae(v):
    events = []
    for x in v["llm_interactions"]:
        for m in x["input_messages"]:
            r = m.get("tool_result")
            if r:
                text = (r["result"] + "\n" if r["result"] else "") + ("Tool call failed with error:\n" + r["error"] if r["error"] else "")
                events.append(said("tool", text.strip()))
            else:
                events.append(said(m["role"], m["content"]))
        a = x["response"]
        events.append(("reply", said("assistant", a["content"], [(c["name"], arguments(c["arguments"])) for c in a["tool_calls"] or []])))
    return turns(events)


def adk(v):
    events = []
    for e in v["events"]:
        if e.get("partial"):
            continue
        for m in content_parts(e["content"]["role"], e["content"]["parts"], spaced):
            if m[0] == "reply" and e["author"] != "root":
                events += [LOST, m[1]]
            else:
                events.append(m)
    return turns(events)


def autogen(v):
    events = []
    for m in v:
        c = m["content"]
        if m["type"] == "FunctionExecutionResultMessage":
            events += [said("tool", x["content"]) for x in c]
        elif m["type"] == "AssistantMessage":
            events.append(("reply", said("assistant", c if type(c) is str else m.get("thought") or "", [] if type(c) is str else [(x["name"], arguments(x["arguments"])) for x in c])))
        else:
            events.append(said("system" if m["type"] == "SystemMessage" else "user", c))
    return turns(events)


def items(v, last):
    """Items of the Responses API; the reply is all of last, or each run of the model's."""
    events, open_ = [], None
    for x in v + [None]:
        model = x is not None and (x.get("type") in ("reasoning", "function_call") or x.get("role") == "assistant")
        if model:
            if open_ is None:
                open_ = said("assistant")
                events.append(("reply", open_) if last is None else open_)
            if x["type"] == "function_call":
                open_[2].append([x["name"], arguments(x["arguments"])])
            if x["type"] == "message":
                open_[1] += texts(x["content"])
            continue
        open_ = None
        if x is None:
            break
        if x.get("type") == "function_call_output":
            events.append(said("tool", x["output"]))
        else:
            c = x["content"]
            events.append(said(x["role"], c if type(c) is str else texts(c)))
    return events


def chat(m):
    return said(m["role"], m.get("content") or "", [(c["function"]["name"], arguments(c["function"]["arguments"])) for c in m.get("tool_calls") or []])


def semantic(m):
    out, text, calls = [], "", []
    for p in m["parts"]:
        if p["type"] == "text":
            text += p["content"]
        if p["type"] == "tool_call":
            calls.append((p["name"], arguments(p["arguments"])))
        if p["type"] == "tool_call_response":
            out.append(said("tool", plain(p["response"])))
    return out or [said(m["role"], text, calls)]


def spans(v):
    for s in (s for r in v["resourceSpans"] for c in r["scopeSpans"] for s in c["spans"]):
        a = {x["key"]: next(iter(x["value"].values())) for x in s["attributes"]}
        if "gen_ai.output.messages" in a:
            seen = [said("system", p["content"]) for p in parse(a["gen_ai.system_instructions"])]
            seen += [x for m in parse(a["gen_ai.input.messages"]) for x in semantic(m)]
            tools = [{"type": "function", "function": {k: t[k] for k in t if k != "type"}} for t in parse(a["gen_ai.tool.definitions"])]
            yield tools, [seen]


def inference(v):
    a, seen = v["attributes"], []
    for i in range(100):
        k = "llm.input_messages.%d.message." % i
        if k + "role" not in a:
            break
        c = k + "tool_calls.0.tool_call.function."
        calls = [(a[c + "name"], arguments(a[c + "arguments"]))] if c + "name" in a else []
        seen.append(said(a[k + "role"], a.get(k + "content", ""), calls))
    return [parse(a["llm.tools.0.tool.json_schema"])], [seen]


def read(kind, path):
    """Each rollout of a file: its tools and contexts."""
    text = path.read_text()
    lines = path.suffix == ".jsonl"
    v = [parse(x) for x in text.splitlines() if x] if lines else parse(text)
    rows = v if lines else [v]
    if kind == "pydantic-ai":
        return [([], pydantic(x["messages"] if lines else x)) for x in rows]
    if kind == "langchain":
        return [([], langchain(v["messages"] if isinstance(v, dict) else v))]
    if kind == "gemini-contents":
        return [gemini_contents(v)]
    if kind == "gemini-cli":
        return [([], gemini_cli(rows))]
    if kind == "bedrock-converse":
        return [bedrock(v)]
    if kind == "vercel-ai":
        return [([], vercel_model(v[0]) if lines else vercel_ui(v))]
    if kind == "goose":
        return [([], goose(v[1:] if lines else v["conversation"]))]
    if kind == "otel-spans":
        return [inference(v[0])] if lines else list(spans(v))
    if kind == "langsmith":
        r, given = v[0], v[0]["inputs"]["messages"]
        if isinstance(given[0], list):
            return [(r["extra"]["invocation_params"]["tools"], [[langchain_message(m) for m in given[0]]])]
        return [([], [[chat(m) for m in given]])]
    if kind == "langfuse":
        return [(v[0]["input"]["tools"], [[chat(m) for m in v[0]["input"]["messages"]]])]
    if kind == "openclaw-session":
        return [([], openclaw(v[1:]))]
    if kind == "autogen" and isinstance(v, dict):
        return [([], autogen(x["agent_state"]["llm_context"]["messages"])) for x in v["agent_states"].values() if "agent_state" in x]
    if kind == "stored-response":
        r = rows[0].get("response", rows[0])
        if "input_items" not in rows[0]:
            return [([], [None])]
        given = items(rows[0]["input_items"]["data"][::-1], r)
        tools = [{"type": "function", "function": {k: t[k] for k in t if k != "type"}} for t in r["tools"]]
        return [(tools, [[said("system", r["instructions"])] + given])]
    if kind == "openai-agents":
        return [([], turns(items(v, None)))]
    one = {"opencode": opencode, "cline": cline, "qwen-code": qwen, "kimi-cli": kimi, "copilot-cli": copilot, "trae-agent": trae, "google-adk": adk, "autogen": autogen}[kind]
    return [([], one(v))]


def main():
    root = Path(sys.argv[1])
    for path in sorted(p for p in root.rglob("*") if p.is_file()):
        for n, (tools, contexts) in enumerate(read(path.parent.name[3:], path)):
            print(json.dumps({
                "id": "%s#%d" % (path.relative_to(root).as_posix(), n),
                "tools_sha256": [sha(canonical(t)) for t in tools],
                "contexts_sha256": [c if c is None else sha(canonical(c)) for c in contexts],
            }, separators=(",", ":")))


if __name__ == "__main__":
    main()
