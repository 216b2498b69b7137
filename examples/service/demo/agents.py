"""Two agents, of the openai and the anthropic package, that list the files of a folder with a tool and say what they saw.

    agents.py BASE_URL ID...    agents of even number are openai's
"""
import subprocess
import sys

import anthropic
import openai

TASK = "How many files are here?"
SCHEMA = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}


def run(command):
    return subprocess.run(["echo", "a.txt b.txt"], capture_output=True, text=True, check=True).stdout  # no agent's command is run here


def of_openai(base, session):
    client = openai.OpenAI(base_url=f"{base}/rollouts/{session}/v1", api_key="none")
    messages = [{"role": "user", "content": TASK}]
    tools = [{"type": "function", "function": {"name": "bash", "description": "Runs a command.", "parameters": SCHEMA}}]
    while True:
        with client.chat.completions.stream(model="m", messages=messages, tools=tools) as stream:
            for _ in stream:
                pass
            reply = stream.get_final_completion().choices[0].message
        if not reply.tool_calls:
            return reply.content
        calls = [{"id": c.id, "type": "function", "function": {"name": c.function.name, "arguments": c.function.arguments}} for c in reply.tool_calls]
        messages.append({"role": "assistant", "content": reply.content, "tool_calls": calls})
        messages += [{"role": "tool", "tool_call_id": c["id"], "content": run(c["function"]["arguments"])} for c in calls]


def of_anthropic(base, session):
    client = anthropic.Anthropic(base_url=f"{base}/rollouts/{session}", api_key="none")
    messages = [{"role": "user", "content": TASK}]
    tools = [{"name": "bash", "description": "Runs a command.", "input_schema": SCHEMA}]
    while True:
        with client.messages.stream(model="m", max_tokens=200, messages=messages, tools=tools) as stream:
            reply = stream.get_final_message()
        calls = [b for b in reply.content if b.type == "tool_use"]
        if not calls:
            return "".join(b.text for b in reply.content if b.type == "text")
        messages.append({"role": "assistant", "content": reply.content})
        messages.append({"role": "user", "content": [{"type": "tool_result", "tool_use_id": c.id, "content": run(c.input)} for c in calls]})


base, sessions = sys.argv[1], sys.argv[2:]
for i, session in enumerate(sessions):
    agent = (of_openai, of_anthropic)[i % 2]
    print(f"{session} ({agent.__name__[3:]}): {agent(base, session)}")
