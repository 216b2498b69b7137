"""Times Jinja (as transformers configures it) on the conversation of BenchmarkRender.

usage: bench_chat.py TEMPLATES_DIR [GO_OUTPUT]

Prints CPU microseconds per rendering, best of 27 blocks of 20, and with the output of
BenchmarkRender, of which the least counts, how many times as long that is.
"""
import re, sys, time
from pathlib import Path
from transformers.utils import chat_template_utils as ctu

messages = [{"role": "system", "content": "You are a software engineering agent. " * 8}]
for i in range(30):
    if i % 5 == 0:
        messages.append({"role": "user", "content": f"Turn {i}: please look at file src/module_{i}.py and tell me what is wrong. " * 3})
    else:
        messages.append({"role": "tool", "tool_call_id": f"call{i:05d}", "name": "bash", "content": f"line {i}: def f(x): return x + 1\n" * 30})
    if i % 5 == 4:
        messages.append({"role": "assistant", "content": "The bug is in the loop. " * 10})
        continue
    arguments = {"command": f"cat src/module_{i}.py | head -50", "timeout": 30}
    messages.append({"role": "assistant", "content": "I will look at it now. " * 4,
                     "tool_calls": [{"id": f"call{i + 1:05d}", "type": "function", "function": {"name": "bash", "arguments": arguments}}]})
tools = [{"type": "function", "function": {"name": "bash", "description": "Run a shell command", "parameters": {
    "type": "object", "properties": {"command": {"type": "string", "description": "the command"}, "timeout": {"type": "integer"}}, "required": ["command"]}}}]
ours = {}
if len(sys.argv) > 2:
    for template, mode, ns in re.findall(r"^BenchmarkRender/(\w+)/(\w+?)(?:-\d+)?\s.*?(\d+) cpu-ns/render", Path(sys.argv[2]).read_text(), re.M):
        ours.setdefault(template, {})[mode] = min(float(ns) / 1e3, ours.get(template, {}).get(mode, 1e9))
for name in ("qwen3", "llama3_1", "gptoss"):
    src = (Path(sys.argv[1]) / f"{name}.jinja").read_text()
    template = ctu._compile_jinja_template(src)
    kwargs = dict(tools=tools, documents=None, add_generation_prompt=True, bos_token="<s>", eos_token="</s>")
    def bare():
        return template.render(messages=messages, **kwargs)
    def whole():
        return ctu.render_jinja_template([messages], tools, None, src, False, False, True, bos_token="<s>", eos_token="</s>")
    times = {}
    for label, f in (("template.render", bare), ("render_jinja_template", whole)):
        f()
        times[label] = 9e6
        for _ in range(27):
            t = time.process_time()
            for _ in range(20):
                f()
            times[label] = min(times[label], (time.process_time() - t) / 20 * 1e6)
        print(f"{name} {label} {times[label]:.0f} us {len(bare())} characters")
    mine = ours.get(name, {})
    for mode, us in mine.items():
        print(f"{name} {mode}: {us:.1f} us, template.render / ours {times['template.render'] / us:.1f}")
