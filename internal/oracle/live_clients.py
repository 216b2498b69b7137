"""Asks a proxy with the official clients of OpenAI and Anthropic, as agents do, and prints
what they were told: one JSON line a case. URL is the base of a session, /rollouts/ID.

    live_clients.py URL
"""
import json
import sys

import anthropic
import openai

url = sys.argv[1]
TOOL = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
ASK = "What is here?"


def tell(case, text, reasoning, calls, finish, tokens, **more):
    print(json.dumps({"case": case, "text": text, "reasoning": reasoning, "calls": calls, "finish": finish, "tokens": tokens, **more}), flush=True)


def base(case):
    return f"{url}-{case}"


def chat(case, stream):
    client = openai.OpenAI(base_url=base(case) + "/v1", api_key="client-secret-2", max_retries=0)
    tools = [{"type": "function", "function": {"name": "run", "description": "Runs a command.", "parameters": TOOL}}]
    messages = [{"role": "user", "content": ASK}]
    for step in range(2):
        kwargs = dict(model="fake", messages=messages, tools=tools, temperature=0.5)
        if stream:
            with client.chat.completions.stream(stream_options={"include_usage": True}, **kwargs) as events:
                for _ in events:
                    pass
                done = events.get_final_completion()
        else:
            done = client.chat.completions.create(**kwargs)
        choice = done.choices[0]
        m = choice.message
        extra = m.model_extra or {}
        tell(case, m.content or "", extra.get("reasoning") or extra.get("reasoning_content") or "",
             [[c.function.name, json.loads(c.function.arguments)] for c in m.tool_calls or []],
             choice.finish_reason, done.usage.completion_tokens, step=step)
        messages.append(m.model_dump(exclude_none=True, exclude={"parsed"}))
        for c in m.tool_calls or []:
            messages.append({"role": "tool", "tool_call_id": c.id, "content": "a.txt"})


def completions(case, stream):
    client = openai.OpenAI(base_url=base(case) + "/v1", api_key="client-secret-2", max_retries=0)
    done = client.completions.create(model="fake", prompt="Once", stream=stream)
    text, finish = "", ""
    for part in done if stream else [done]:
        if part.choices:
            text += part.choices[0].text
            finish = part.choices[0].finish_reason or finish
    tell(case, text, "", [], finish, 0)


def responses(case, stream):
    client = openai.OpenAI(base_url=base(case) + "/v1", api_key="client-secret-2", max_retries=0)
    tools = [{"type": "function", "name": "run", "description": "Runs a command.", "parameters": TOOL, "strict": False}]
    ask, previous = [{"role": "user", "content": ASK}], openai.omit
    for step in range(2):
        kwargs = dict(model="fake", input=ask, tools=tools, instructions="Be brief.", previous_response_id=previous)
        if stream:
            with client.responses.stream(**kwargs) as events:
                deltas = "".join(e.delta for e in events if e.type == "response.output_text.delta")
                done = events.get_final_response()
            assert deltas == done.output_text, (deltas, done.output_text)
        else:
            done = client.responses.create(**kwargs)
        calls = [o for o in done.output if o.type == "function_call"]
        reasoning = "".join(p.text for o in done.output if o.type == "reasoning" for p in o.content or [])
        tell(case, done.output_text, reasoning, [[c.name, json.loads(c.arguments)] for c in calls], done.status, done.usage.output_tokens, step=step)
        previous = done.id
        ask = [{"type": "function_call_output", "call_id": c.call_id, "output": "a.txt"} for c in calls] or [{"role": "user", "content": "And now?"}]


def messages(case, stream):
    client = anthropic.Anthropic(base_url=base(case), api_key="client-secret-3", max_retries=0)
    tools = [{"name": "run", "description": "Runs a command.", "input_schema": TOOL}]
    said = [{"role": "user", "content": ASK}]
    for step in range(2):
        kwargs = dict(model="fake", max_tokens=4000, system="Be brief.", messages=said, tools=tools, thinking={"type": "enabled", "budget_tokens": 1024})
        counted = client.messages.count_tokens(**{k: v for k, v in kwargs.items() if k not in ("max_tokens",)}).input_tokens
        if stream:
            with client.messages.stream(**kwargs) as events:
                deltas = "".join(events.text_stream)
                done = events.get_final_message()
            assert deltas == "".join(b.text for b in done.content if b.type == "text")
        else:
            done = client.messages.create(**kwargs)
        calls = [b for b in done.content if b.type == "tool_use"]
        tell(case, "".join(b.text for b in done.content if b.type == "text"), "".join(b.thinking for b in done.content if b.type == "thinking"),
             [[c.name, c.input] for c in calls], done.stop_reason, done.usage.output_tokens, step=step, counted=counted, prompt=done.usage.input_tokens)
        said.append({"role": "assistant", "content": [b.model_dump(exclude_none=True) for b in done.content]})
        said.append({"role": "user", "content": [{"type": "tool_result", "tool_use_id": c.id, "content": "a.txt"} for c in calls] or "And now?"})


def errors():
    client = openai.OpenAI(base_url=url.rsplit("/rollouts/", 1)[0] + "/v1", api_key="client-secret-2", max_retries=0)
    try:
        client.chat.completions.create(model="fake", messages=[{"role": "user", "content": ASK}])
    except openai.AuthenticationError as e:
        tell("errors-openai", e.body["message"], "", [], e.body["type"], e.status_code)
    client = anthropic.Anthropic(base_url=url.rsplit("/rollouts/", 1)[0], api_key="client-secret-3", max_retries=0)
    try:
        client.messages.create(model="fake", max_tokens=10, messages=[{"role": "user", "content": ASK}])
    except anthropic.AuthenticationError as e:
        tell("errors-anthropic", e.body["error"]["message"], "", [], e.body["error"]["type"], e.status_code)


for streamed in (False, True):
    end = "stream" if streamed else "whole"
    chat("chat-" + end, streamed)
    completions("completions-" + end, streamed)
    responses("responses-" + end, streamed)
    messages("anthropic-" + end, streamed)
print(json.dumps({"models": [m.id for m in openai.OpenAI(base_url=base("models") + "/v1", api_key="x").models.list()]}))
errors()
