"""Writes one conversation in the shapes that formats have it in, each as it occurs in the wild,
and compares what `plumb import --to native` reads with the conversation.

usage: diff_variants.py PLUMB

Contents as texts or parts, arguments as objects or text, reasoning under each of its names, the
system prompt beside the messages, tools of every API, nulls: what was said, thought, called and
answered has to be the same, and the tools and the temperature where a shape has them. What a
format does not hold (the system prompt of sessions) is left out of what is wanted.
"""
import itertools
import json
import subprocess
import sys
import tempfile
from pathlib import Path

CALLS = [("c1", "ls", {"path": "/a"}), ("c2", "cat", {"f": "b é"})]
RESULTS = [("c1", "ls", "R1"), ("c2", "cat", "R2")]
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}


def text(x):
    return json.dumps(x, ensure_ascii=False)


def wanted(system=True, thought="TH1", said="A1", head="Q1"):
    yield from [("system", "SYS", "", ())] if system else []
    yield ("user", head, "", ())
    yield ("assistant", said, thought, tuple((n, text(a)) for _, n, a in CALLS))
    for _, _, r in RESULTS:
        yield ("tool", r, "", ())
    yield ("assistant", "A2", "", ())


def tools(kind):
    key = {"openai": "parameters", "bare": "parameters", "responses": "parameters", "anthropic": "input_schema"}[kind]
    flat = [{"name": n, "description": "d", key: SCHEMA} for n in ("ls", "cat")]
    if kind == "openai":
        return [{"type": "function", "function": f} for f in flat]
    return [{"type": "function", **f} for f in flat] if kind == "responses" else flat


def content(s, o):
    return {"parts": [{"type": "text", "text": s}], "texts": [s]}.get(o.get("content"), s)


def arguments(a, o):
    return a if o.get("arguments") == "object" else text(a)


def thinking(o):
    return {"reasoning_details": [{"type": "reasoning.text", "text": "TH1"}], "thinking_blocks": [{"type": "thinking", "thinking": "TH1"}],
            "provider_specific_fields": {"reasoning_content": "TH1"}}.get(o.get("think"), "TH1")


def messages(o):
    out = [] if "system" in o else [{"role": "system", "content": content("SYS", o)}]
    calls = [{"id": i, "type": "function", "function": {"name": n, "arguments": arguments(a, o)}} for i, n, a in CALLS]
    if o.get("flat"):
        calls = [{"id": i, "name": n, "arguments": arguments(a, o)} for i, n, a in CALLS]
    out += [{"role": "user", "content": content("Q1", o)},
            {"role": "assistant", "content": content("A1", o), o.get("think", "reasoning_content"): thinking(o), "tool_calls": calls}]
    out += [{"role": "tool", "tool_call_id": i, "content": content(r, o)} for i, _, r in RESULTS]
    out += [{"role": "assistant", "content": content("A2", o)}]
    if o.get("nulls"):
        names = ("name", "tool_calls", "tool_call_id", "reasoning_content", "refusal", "audio", "function_call")
        out = [{**{k: None for k in names}, **m} for m in out]
    return out


def beside(r, o):
    if "system" in o:
        r[o["system"]] = "SYS"
    if "tools" in o:
        t = tools(o["tools"])
        r[o.get("tools key", "tools")] = text(t) if o.get("tools as") == "text" else [text(x) for x in t] if o.get("tools as") == "texts" else t
    return r


def chat(o):
    m = messages(o)
    return beside({o.get("key", "messages"): text(m) if o.get("as text") else m}, o)


def two_lists(o):
    m = messages(o)
    k = 1 if "system" in o else 2
    return beside({side: text(x) if o.get("as text") else x for side, x in (("prompt", m[:k]), ("completion", m[k:]))}, o)


def verifiers(o):
    return {**two_lists(o), "example_id": 1, "task": "t", "reward": 1.0, "metrics": {}, "info": {}, "is_completed": True, "is_truncated": False}


def conversations(o):
    f, v = o.get("names", ("from", "value"))
    who = o.get("speakers", ("system", "human", "gpt", "observation"))
    out = [] if "system" in o else [{f: who[0], v: "SYS"}]
    out += [{f: who[1], v: "Q1"}, {f: who[2], v: "A1", "reasoning_content": "TH1"},
            {f: "function_call", v: text([{"name": n, "arguments": arguments(a, o)} for _, n, a in CALLS])}]
    out += [{f: who[3], v: r} for _, _, r in RESULTS] + [{f: who[2], v: "A2"}]
    return beside({o.get("key", "conversations"): text(out) if o.get("as text") else out}, o)


def anthropic(o):
    reply = [{"type": "thinking", "thinking": "TH1", "signature": "s"}, {"type": "text", "text": "A1"}]
    reply += [{"type": "tool_use", "id": i, "name": n, "input": a} for i, n, a in CALLS]
    asked = [{"role": "user", "content": content("Q1", o)}, {"role": "assistant", "content": reply},
             {"role": "user", "content": [{"type": "tool_result", "tool_use_id": i, "content": content(r, o)} for i, _, r in RESULTS]}]
    request = {"model": "m", "max_tokens": 9, "system": content("SYS", o), "messages": asked, "tools": tools("anthropic"), "temperature": 0.5}
    response = {"id": "m1", "type": "message", "role": "assistant", "content": [{"type": "text", "text": "A2"}], "stop_reason": "end_turn"}
    if o.get("batch"):
        return [{"custom_id": "a", "params": request}, {"custom_id": "a", "result": {"type": "succeeded", "message": response}}]
    return {"request": request, "response": response}


def openai(o):
    request = {**chat({**o, "tools": "openai"}), "model": "m", "temperature": 0.5}
    request["messages"] = request["messages"][:-1]
    response = {"id": "c1", "object": "chat.completion", "choices": [{"index": 0, "message": {"role": "assistant", "content": "A2"}, "finish_reason": "stop"}]}
    if o.get("batch"):
        return [{"custom_id": "a", "method": "POST", "url": "/v1/chat/completions", "body": request},
                {"id": "b", "custom_id": "a", "response": {"status_code": 200, "body": response}, "error": None}]
    return {"request": request, "response": response}


def items(o):
    part = [{"type": "input_text", "text": "Q1"}] if o.get("content") == "parts" else "Q1"
    out = [{"role": "user", "content": part}, {"type": "reasoning", "id": "r", "summary": [], "content": [{"type": "reasoning_text", "text": "TH1"}]}, said("A1")]
    out += [{"type": "function_call", "id": "f" + i, "call_id": i, "name": n, "arguments": text(a)} for i, n, a in CALLS]
    return out + [{"type": "function_call_output", "call_id": i, "output": r} for i, _, r in RESULTS]


def said(s):
    return {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": [{"type": "output_text", "text": s, "annotations": []}]}


def responses(o):
    response = {"id": "r", "object": "response", "status": "completed", "output": [said("A2")]}
    if o.get("stored"):
        response.update(instructions="SYS", tools=tools("responses"), temperature=0.5)
        return {"response": response, "input_items": {"object": "list", "data": items(o), "has_more": False}}
    return {"request": {"instructions": "SYS", "input": items(o), "tools": tools("responses"), "temperature": 0.5}, "response": response}


def run_state(o):
    kinds = {"reasoning": "reasoning_item", "message": "message_output_item", "function_call": "tool_call_item", "function_call_output": "tool_call_output_item"}
    made = [{"type": kinds[x["type"]], "raw_item": x, "agent": {"name": "A"}} for x in items(o)[1:] + [said("A2")]]
    return {"$schemaVersion": "1.10", "original_input": "Q1", "model_responses": [], "generated_items": made, "session_items": made if o.get("session") else []}


def langchain(o):
    made = []
    for kind, name, m in zip(("system", "human", "ai", "tool", "tool", "ai"), ("System", "Human", "AI", "Tool", "Tool", "AI"), messages({**o, "think": "x"})):
        f = {"content": m["content"], "type": kind}
        if not o.get("bare"):
            f.update(additional_kwargs={}, response_metadata={}, name=None, id=None)
        if kind == "tool":
            f["tool_call_id"] = m["tool_call_id"]
        if "tool_calls" in m:
            f["tool_calls"] = [{"name": n, "args": a, "id": i, "type": "tool_call"} for i, n, a in CALLS]
            blocks = {"reasoning": [{"type": "reasoning", "reasoning": "TH1"}], "thinking": [{"type": "thinking", "thinking": "TH1"}],
                      "responses": [{"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "TH1"}]}]}.get(o.get("think"))
            if blocks:
                f["content"] = blocks + [{"type": "text", "text": "A1"}]
            else:
                f["additional_kwargs"] = {"reasoning_content": "TH1"}
            if o.get("calls") == "blocks":
                f["content"] += [{"type": "tool_call", "name": n, "args": a, "id": i} for i, n, a in CALLS]
                del f["tool_calls"]
        wrap = {"data": {"type": kind, "data": f}, "lc": {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", name + "Message"], "kwargs": f}}
        made.append(wrap.get(o.get("wrap"), f))
    prompt = {"lc": 1, "type": "constructor", "id": ["langchain", "prompts", "chat", "ChatPromptValue"], "kwargs": {"messages": made}}
    return {"list": made, "values": {"values": {"messages": made}, "next": []}, "prompt": prompt}.get(o.get("within"), {"messages": made})


def gemini(o):
    snake = o.get("snake")
    call, answer, decl = ("function_call", "function_response", "function_declarations") if snake else ("functionCall", "functionResponse", "functionDeclarations")
    reply = [{"text": "TH1", "thought": True}, {"text": "A1"}] + [{call: {"id": i, "name": n, "args": a}} for i, n, a in CALLS]
    asked = [{"role": "user", "parts": [{"text": "Q1"}]}, {"role": "model", "parts": reply},
             {"role": o.get("role", "user"), "parts": [{answer: {"id": i, "name": n, "response": {"output": r}}} for i, n, r in RESULTS]}]
    last = {"role": "model", "parts": [{"text": "A2"}]}
    defs = [{decl: [{"name": n, "description": "d", "parameters": {"type": "OBJECT"}} for n in ("ls", "cat")]}]
    if o.get("config"):
        return {"contents": asked + [last], "config": {"system_instruction": "SYS", "tools": defs, "temperature": 0.5}}
    r = {"contents": asked, "system_instruction" if snake else "systemInstruction": {"parts": [{"text": "SYS"}]}, "tools": defs,
         "generation_config" if snake else "generationConfig": {"temperature": 0.5}}
    if o.get("pair"):
        return {"request": r, "response": {"candidates": [{"content": last, "finishReason": "STOP"}]}}
    return {**r, "contents": asked + [last]}


def converse(o):
    word = {"citationsContent": {"content": [{"text": "A1"}], "citations": []}} if o.get("cited") else {"text": "A1"}
    reply = [{"reasoningContent": {"reasoningText": {"text": "TH1"}}}, word] + [{"toolUse": {"toolUseId": i, "name": n, "input": a}} for i, n, a in CALLS]
    head = {"guardContent": {"text": {"text": "Q1"}}} if o.get("guarded") else {"text": "Q1"}
    asked = [{"role": "user", "content": [head]}, {"role": "assistant", "content": reply},
             {"role": "user", "content": [{"toolResult": {"toolUseId": i, "content": [{"text": r}], "status": "success"}} for i, _, r in RESULTS]}]
    last = {"role": "assistant", "content": [{"text": "A2"}]}
    defs = [{"toolSpec": {"name": n, "description": "d", "inputSchema": {"json": SCHEMA}}} for n in ("ls", "cat")] + [{"cachePoint": {"type": "default"}}]
    r = {"system": [{"text": "SYS"}, {"cachePoint": {"type": "default"}}], "messages": asked, "inferenceConfig": {"temperature": 0.5}, "toolConfig": {"tools": defs}}
    answer = {"output": {"message": last}, "stopReason": "end_turn"}
    if o.get("log"):
        return {"schemaType": "ModelInvocationLog", "operation": "Converse", "input": {"inputBodyJson": r}, "output": {"outputBodyJson": answer}}
    return {**r, **answer} if o.get("pair") else {**r, "messages": asked + [last]}


def span(o):
    if o.get("numbered"):
        a = {"gen_ai.request.temperature": 0.5}
        for k, m in enumerate(messages({"flat": True})[:-1]):
            m.pop("reasoning_content", None)
            for key, x in m.items():
                if key != "tool_calls":
                    a[f"gen_ai.prompt.{k}.{key}"] = x
            for j, c in enumerate(m.get("tool_calls", [])):
                a.update({f"gen_ai.prompt.{k}.tool_calls.{j}.{key}": x for key, x in c.items()})
        a.update({"gen_ai.completion.0.role": "assistant", "gen_ai.completion.0.content": "A2"})
        for k, t in enumerate(tools("bare")):
            a.update({f"llm.request.functions.{k}.{key}": x if isinstance(x, str) else text(x) for key, x in t.items()})
    else:
        reply = [{"type": "reasoning", "content": "TH1"}, {"type": "text", "content": "A1"}]
        reply += [{"type": "tool_call", "id": i, "name": n, "arguments": arguments(a, o)} for i, n, a in CALLS]
        asked = [{"role": "user", "parts": [{"type": "text", "content": "Q1"}]}, {"role": "assistant", "parts": reply}]
        asked += [{"role": "tool", "parts": [{"type": "tool_call_response", "id": i, "response": r}]} for i, _, r in RESULTS]
        last = [{"role": "assistant", "parts": [{"type": "text", "content": "A2"}], "finish_reason": "stop"}]
        a = {"gen_ai.request.temperature": 0.5, "gen_ai.system_instructions": text([{"type": "text", "content": "SYS"}]), "gen_ai.input.messages": text(asked),
             "gen_ai.output.messages": text(last), "gen_ai.tool.definitions": text(tools("responses"))}
    if o.get("export"):
        listed = [{"key": k, "value": {"stringValue": x} if isinstance(x, str) else {"doubleValue": x}} for k, x in a.items()]
        return {"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "t", "spanId": "s", "attributes": listed}]}]}]}
    return {"traceId": "t", "spanId": "s", "name": "chat", "attributes": a}


def claude_code(o):
    reply = [{"type": "thinking", "thinking": "TH1", "signature": "s"}, {"type": "text", "text": "A1"}]
    reply += [{"type": "tool_use", "id": i, "name": n, "input": a} for i, n, a in CALLS]
    results = [{"type": "tool_result", "tool_use_id": i, "content": content(r, o)} for i, _, r in RESULTS]
    made = [("user", {"role": "user", "content": content("Q1", o)})]
    made += [("assistant", {"id": "m1", "role": "assistant", "content": b}) for b in ([reply] if o.get("whole") else [[b] for b in reply])]
    made += [("user", {"role": "user", "content": b}) for b in ([results] if o.get("whole") else [[b] for b in results])]
    made += [("assistant", {"id": "m2", "role": "assistant", "content": [{"type": "text", "text": "A2"}]})]
    return [{"parentUuid": f"u{k - 1}" if k else None, "isSidechain": False, "sessionId": "s", "version": "2", "type": t, "message": m, "uuid": f"u{k}",
             "timestamp": f"2025-01-01T00:00:{k:02d}Z"} for k, (t, m) in enumerate(made)]


def codex(o):
    made = [("session_meta", {"id": "t", "timestamp": "2025-11-01T00:00:00Z", "base_instructions": {"text": "SYS"}})]
    made += [("response_item", {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Q1"}]})]
    made += [("response_item", x) for x in items({})[1:5]] + [("event_msg", {"type": "token_count", "info": {}})]
    made += [("response_item", {"type": "function_call_output", "call_id": i, "output": {"content": r, "success": True} if o.get("object") else r}) for i, _, r in RESULTS]
    made += [("response_item", said("A2"))]
    return [{"timestamp": f"2025-11-01T00:00:{k:02d}Z", "type": t, "payload": p} for k, (t, p) in enumerate(made)]


def ways(key, *values):
    return [{key: x} for x in values]


NAMES = ("reasoning", "reasoning_content", "thinking", "reasoning_details", "thinking_blocks", "provider_specific_fields")
TOOLS = ways("tools", "openai", "bare", "anthropic", "responses")
CASES = [  # shape, its variants, what else is wanted, the name of the file
    (chat, [{}, *ways("think", *NAMES), *ways("content", "parts", "texts"), {"arguments": "object"}, *ways("system", "system", "system_prompt", "instructions"), *TOOLS,
            {"tools": "openai", "tools as": "text"}, {"tools": "openai", "tools as": "texts"}, {"tools": "bare", "tools key": "functions"},
            {"tools": "openai", "tools key": "tool_definitions"}, {"nulls": 1}, {"as text": 1}, *ways("key", "trajectory", "conversation"), {"flat": 1}], {}, "x.jsonl"),
    (two_lists, [{}, *ways("think", *NAMES), *ways("content", "parts", "texts"), {"system": "system"}, *TOOLS, {"nulls": 1}, {"as text": 1}], {}, "x.jsonl"),
    (verifiers, [{}, {"think": "reasoning_details"}, {"content": "parts"}, {"arguments": "object"}, {"flat": 1}, {"tools": "bare", "tools key": "tool_defs"}], {}, "x.jsonl"),
    (conversations, [{}, {"arguments": "object"}, {"system": "system"}, {"system": "system_prompt"}, *TOOLS, {"as text": 1}, *ways("key", "conversation", "messages"),
                     *ways("names", ("role", "content"), ("from", "content")), {"speakers": ("system", "user", "assistant", "tool")}], {}, "x.jsonl"),
    (anthropic, [{}, {"content": "parts"}, {"batch": 1}], {"tools": 1}, "x.jsonl"),
    (openai, [{}, {"content": "parts"}, {"think": "reasoning"}, {"nulls": 1}, {"batch": 1}], {"tools": 1}, "x.jsonl"),
    (responses, [{}, {"content": "parts"}, {"stored": 1}], {"tools": 1}, "x.jsonl"),
    (run_state, [{}, {"session": 1}], {"system": False}, "x.json"),
    (langchain, [{"wrap": w, **x} for w in ("data", "lc", "flat") for x in ({}, {"bare": 1}, {"content": "texts"}, {"think": "thinking"})]
     + [*ways("think", "reasoning", "responses"), {"think": "reasoning", "calls": "blocks"}, {"within": "values"}, {"within": "prompt", "wrap": "lc"}], {}, "x.jsonl"),
    (langchain, [{"within": "list"}, {"within": "list", "wrap": "data"}], {}, "x.json"),
    (gemini, [{}, {"snake": 1}, *ways("role", "function"), {"config": 1, "snake": 1}, {"config": 1}, {"pair": 1}], {"tools": 1}, "x.jsonl"),
    (converse, [{}, {"cited": 1}, {"guarded": 1}, {"pair": 1}, {"log": 1}], {"tools": 1}, "x.jsonl"),
    (span, [{}, {"arguments": "object"}, {"export": 1}], {"tools": 1}, "x.jsonl"),
    (span, [{"numbered": 1}, {"numbered": 1, "export": 1}], {"tools": 1, "thought": ""}, "x.jsonl"),
    (claude_code, [{}, {"whole": 1}, {"content": "parts"}], {"system": False}, "x.jsonl"),
    (codex, [{}, {"object": 1}], {}, "rollout-x.jsonl"),
]


def facts(message):
    c = message.get("content") or ""
    if isinstance(c, list):
        c = "".join(p if isinstance(p, str) else p.get("text", "") for p in c)
    calls = [x.get("function", x) for x in message.get("tool_calls", [])]
    calls = [(f["name"], f["arguments"] if isinstance(f["arguments"], dict) else json.loads(f["arguments"])) for f in calls]
    return message["role"], c, message.get("reasoning", ""), tuple((n, text(a)) for n, a in calls)


def differs(plumb, path, o, more):
    lines = subprocess.run([plumb, "import", "--to", "native", path], capture_output=True, text=True).stdout.splitlines()
    read = [json.loads(x) for x in lines]
    if len(read) != 1 or "messages" not in read[0]:
        return f"{len(read)} records: {text(read)[:300]}"
    got = [facts(m) for m in read[0]["messages"]]
    want = list(wanted(**{k: x for k, x in more.items() if k != "tools"}))
    if got != want:
        return next(f"{g} and not {w}" for g, w in itertools.zip_longest(got, want) if g != w)
    defs = [json.loads(t) if isinstance(t, str) else t for t in read[0].get("tools", [])]
    names = [t.get("function", t).get("name") for t in defs]
    if ("tools" in o or "tools" in more) and names != ["ls", "cat"]:
        return f"the tools are {names}"
    if "tools" in more and read[0].get("temperature") != 0.5:
        return f"the temperature is {read[0].get('temperature')}"


def main():
    plumb, n, wrong = sys.argv[1], 0, 0
    with tempfile.TemporaryDirectory() as tmp:
        for shape, variants, more, name in CASES:
            for o in variants:
                made, path = shape(o), Path(tmp) / name
                whole = name.endswith(".json") or not isinstance(made, list)
                path.write_text(text(made) if whole else "\n".join(map(text, made)))
                n += 1
                if why := differs(plumb, path, o, more):
                    wrong += 1
                    print(f"{shape.__name__} {o}: {why}")
    print(n, "variants,", wrong, "read otherwise than they were written")
    sys.exit(wrong > 0)


main()
