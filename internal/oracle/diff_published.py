"""Compares `plumb render` with transformers on the chat templates inside packages.

usage: diff_published.py PLUMB CONVERSATIONS_JSON PACKAGE...

A PACKAGE is a wheel, an sdist or a folder: files *.jinja, chat_template members of
*.json and long strings of *.py that loop over messages are templates. Each is
rendered over the conversations of the templates kit and the odd ones below, with
and without a generation prompt, and, where a reply ends them, continued. Text, kind
of error and raised message are compared; exit status 1 on any difference.

    pip download --no-deps -d packages axolotl unsloth guidance vllm xinference oumi
    pip download --no-deps --no-build-isolation -d packages llama-cpp-python
"""
import ast, copy, hashlib, json, os, re, signal, subprocess, sys, tarfile, tempfile, zipfile
from transformers.utils import chat_template_utils as ctu
from diff_templates import NOW, Clock, answer, same

TOKENS = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"}
SWITCHES = [{}, {"enable_thinking": False}, {"enable_thinking": True, "thinking": True, "reasoning_effort": "high"}, {"thinking": False, "preserve_thinking": True, "clear_thinking": False, "thinking_mode": "thinking"},
            {"builtin_tools": ["python"], "model_identity": "me", "reasoning_effort": "low", "date_string": "d", "tools_in_user_message": False, "thinking_budget": 512}]
TOOLS = [{"type": "function", "function": {"name": "get_weather", "description": "Wetter é \"q\" <b>", "parameters": {"type": "object", "properties": {"city": {"type": ["string", "null"], "description": "c", "enum": ["a", "b"]}, "opts": {"type": "object", "properties": {"x": {"anyOf": [{"type": "string"}, {"type": "number"}]}}}}, "required": ["city"]}, "return": {"type": "string"}}},
         {"type": "function", "function": {"name": "noargs", "description": None, "parameters": {}}}, {"type": "function", "function": {"name": "ref", "parameters": {"$defs": {"A": {"type": "string"}}, "properties": {"a": {"$ref": "#/$defs/A"}, "c": {"const": 1}}, "additionalProperties": False}, "strict": True}}]
DOCUMENTS = [{"title": "A", "text": "Text é"}, {"title": "B", "text": "b\n", "id": 2, "url": None}]


def say(role, content, **rest):
    return {"role": role, "content": content, **rest}


def call(name, arguments, number=1):
    return {"id": f"c{number}", "type": "function", "function": {"name": name, "arguments": arguments}}


HI, TEXTS = say("user", "Hi?"), [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
ODD = [
    [HI, say("assistant", "x", reasoning_content="T", tool_calls=[call("get_weather", {"city": "P", "n": {"a": [1, 2.0, "s", None]}})]), say("tool", "r", tool_call_id="c1"), say("assistant", "Done.", reasoning_content="M")],
    [HI, say("assistant", None, tool_calls=[call("get_weather", {"city": "P"}), call("noargs", {}, 2)]), say("tool", "sunny", tool_call_id="c1"), say("tool", '{"a": 1}', tool_call_id="c2"), say("assistant", "Done.")],
    [HI, say("assistant", "Text.", tool_calls=[call("get_weather", '{"city": "é"}')]), say("tool", {"t": 1.5, "l": [1, None, True]}, tool_call_id="c1"), say("assistant", "Done."), HI],
    [HI, say("assistant", "", tool_calls=[call("get_weather", {"s": "multi\nline \"q\" <x>", "b": True, "f": 1e-7})]), say("tool", TEXTS, name="get_weather"), say("user", "go on")],
    [HI, say("assistant", "", tool_calls=[{"function": {"name": "f", "arguments": {"a": 1}}}]), say("ipython", "out")], [HI, say("assistant", "", tool_calls=[{"name": "f", "arguments": {}}]), say("tool", None)],
    [HI, say("assistant", "", tool_calls=[call("get_weather", None)]), say("tool", "x")], [HI, say("assistant", "a", tool_calls=None)], [HI, say("assistant", "", tool_calls=[])], [HI, {"role": "assistant"}], [say("user", None)],
    [say("system", TEXTS), say("user", TEXTS), say("assistant", TEXTS)], [say("user", [{"type": "text", "text": "see"}, {"type": "image"}, {"type": "image_url", "image_url": {"url": "http://x"}}]), say("assistant", "A")],
    [HI, say("assistant", "A", reasoning="B"), HI, say("assistant", "C", thinking="D")], [HI, say("assistant", "<think>\nin\n</think>\n\nOut."), HI], [say("developer", "dev"), HI], [say("critic", "?"), HI], [say("system", "S")], [HI, HI], [say("assistant", "first"), HI],
    [HI, say("assistant", "")], [say("user", ""), say("assistant", "  lead and trail \n"), say("user", " \n ")], [say("user", "漢字 😀 ŉ\x00\u2028"), say("assistant", "é\ud7ff")], [say("system", "<|im_end|>[INST]</s>"), say("user", "<think>x</think>"), say("assistant", "<|eot_id|>")],
    [say("user", "named", name="Bob"), say("assistant", "y", name="Al", prefix=True)],
]


def files(package):
    """Names and contents of what may hold templates."""
    wanted = re.compile(r"\.(jinja2?|py|json)$")
    if os.path.isdir(package):
        for root, _, names in os.walk(package):
            yield from ((n, open(os.path.join(root, n), "rb").read()) for n in names if wanted.search(n))
    elif package.endswith(".whl"):
        with zipfile.ZipFile(package) as z:
            yield from ((i.filename, z.read(i)) for i in z.infolist() if wanted.search(i.filename) and i.file_size < 2e6)
    else:
        with tarfile.open(package) as t:
            yield from ((m.name, t.extractfile(m).read()) for m in t if m.isfile() and wanted.search(m.name) and m.size < 2e6)


def strings(node):
    """The string constants of a Python file, sums of them joined."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [node.value]
    parts = [s for child in ast.iter_child_nodes(node) for s in strings(child)]
    return ["".join(parts)] if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) else parts


def members(node):
    """The chat_template members of a JSON document, and the texts of named ones."""
    if isinstance(node, dict):
        t = node.get("chat_template")
        yield from [t] if isinstance(t, str) else [x["template"] for x in t or []]
        node = [v for k, v in node.items() if k != "chat_template"]
    if isinstance(node, list):
        for v in node:
            yield from members(v)


def templates(packages):
    """The different templates of the packages, by a name."""
    found = {}
    for package in packages:
        for name, data in files(package):
            try:
                text = data.decode()
                if name.endswith(".json"):
                    texts = list(members(json.loads(text))) if '"chat_template"' in text else []
                else:
                    texts = strings(ast.parse(text)) if name.endswith(".py") and "{%" in text else [text]
            except (ValueError, SyntaxError, AttributeError, KeyError, TypeError):
                continue
            for t in texts:
                if "messages" in t and "{%" in t and len(t) > 150:
                    found.setdefault(hashlib.sha256(t.encode("utf-8", "replace")).hexdigest(), (f"{os.path.basename(package)}: {name}", t))
    return found.values()


def cases(source, kit):
    def case(messages, generation, final=False, tools=None, documents=None, kwargs=TOKENS):
        messages = [{k: v for k, v in m.items() if v is not None} for m in copy.deepcopy(messages)]
        return {"template_text": source, "messages": messages, "tools": tools, "documents": documents, "add_generation_prompt": generation, "continue_final_message": final, "kwargs": kwargs, "drop_null_keys": True}

    for c in kit:
        if not c.get("templates"):
            for s in c["settings"][:2]:
                yield case(c["messages"], s["add_generation_prompt"], False, c.get("tools"), c.get("documents"), s["kwargs"])
    for i, messages in enumerate(ODD):
        tools = TOOLS if i % 2 == 0 else None
        yield case(messages, False, tools=tools)
        yield case(messages, True, tools=tools, documents=DOCUMENTS if i % 5 == 0 else None, kwargs={**(TOKENS if i % 4 else {}), **SWITCHES[i % len(SWITCHES)]})
        if messages[-1]["role"] == "assistant" and isinstance(messages[-1].get("content"), str):
            yield case(messages, False, final=True, tools=tools)


def rendered(c):
    c = json.loads(json.dumps(c))
    return ctu.render_jinja_template(conversations=[c["messages"]], tools=c["tools"], documents=c["documents"], chat_template=c["template_text"], add_generation_prompt=c["add_generation_prompt"], continue_final_message=c["continue_final_message"], **c["kwargs"])[0][0]


def main():
    binary, kit = sys.argv[1], json.load(open(sys.argv[2], encoding="utf-8"))
    ctu.datetime = Clock
    signal.signal(signal.SIGALRM, lambda *_: (_ for _ in ()).throw(TimeoutError()))
    sources = compared = errors = bad = 0
    for name, source in templates(sys.argv[3:]):
        made = list(cases(source, kit))
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl", encoding="utf-8") as f:
            f.writelines(json.dumps({"id": i, **c}) + "\n" for i, c in enumerate(made))
            f.flush()
            p = subprocess.run([binary, "render", "--errors=data", "--now", NOW, f.name], capture_output=True, check=True)
        sources += 1
        for c, line in zip(made, p.stdout.splitlines(), strict=True):
            want, got = answer(lambda: rendered(c)), json.loads(line)
            if want is None:
                continue
            compared += 1
            errors += "error" in want
            if not same(want, got):
                bad += 1
                if bad <= 5:
                    print("%s: %s\n  want %s\n  got  %s" % (name, json.dumps(c["messages"])[:300], json.dumps(want)[-400:], line.decode()[:400]))
    print(f"{sources} templates, {compared} cases, {bad} differ ({errors} errors)")
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
