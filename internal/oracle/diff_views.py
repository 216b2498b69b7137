"""Random event logs of the OpenHands agent SDK: what each turn saw, against the SDK's own View.

usage: diff_views.py PLUMB PEERS LOGS SEED

PEERS is a folder with the package openhands-sdk, of which the view runs on stand-ins for
events. Logs hold calls with and without thinking blocks and results, parallel calls,
messages, events that the model does not see, and condensations that forget any run of
events. A context that turnpack knows must be the view's, message by message; one that
it does not know is counted, and needs a reason in the log.
"""
import importlib
import json
import logging
import random
import subprocess
import sys
import tempfile
import types
from pathlib import Path

import pydantic

import peers

PLUMB, PEERS, LOGS, SEED = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
NAMES = ["Event", "LLMConvertibleEvent", "ActionEvent", "ObservationBaseEvent", "MessageEvent", "CondensationSummaryEvent", "CondensationRequest", "Condensation"]


class Event(types.SimpleNamespace):
    """An event with the fields of its record."""


def view_of():
    """The SDK's View over classes of these names."""
    kinds = {"Event": Event, "EventID": str, "ToolCallID": str}
    for name in NAMES[1:]:
        kinds[name] = type(name, (Event if name in ("LLMConvertibleEvent", "CondensationRequest", "Condensation") else kinds["LLMConvertibleEvent"],), {})

    def apply(self, events):
        left = [e for e in events if e.id not in self.forgotten_event_ids]
        if getattr(self, "summary", None) is not None:
            left.insert(self.summary_offset, kinds["CondensationSummaryEvent"](id=self.id + "-summary"))
        return left

    kinds["Condensation"].apply = apply
    for name in ("openhands", "openhands.sdk", "openhands.sdk.context"):
        peers.package(name, PEERS / name.replace(".", "/"))
    for name in ("openhands.sdk.event", "openhands.sdk.event.base"):
        peers.package(name, "")
        sys.modules[name].__dict__.update(kinds)
    pydantic.BaseModel.model_config["arbitrary_types_allowed"] = True
    return importlib.import_module("openhands.sdk.context.view").View, kinds


def log(r):
    """One log, its events as they are recorded."""
    events, last = [], None
    add = lambda kind, source="agent", **more: events.append({"id": f"{len(events)}", "kind": kind, "source": source} | more) or events[-1]
    text = lambda: [{"type": "text", "text": str(len(events))}]
    say = lambda role, **more: add("MessageEvent", "user" if role == "user" else "agent", llm_message={"role": role, "content": text()}, **more)
    add("SystemPromptEvent", system_prompt={"text": "0"}, tools=[])
    say("user")
    for response in range(r.randrange(3, 12)):
        k = r.random()
        if k < .1:
            say("user")
        elif k < .2:
            say("assistant", llm_response_id=f"r{response}")
        elif k < .28:
            add(r.choice(["ConversationStateUpdateEvent", "PauseEvent", "CondensationRequest"]), "environment")
        elif k < .36 and len(events) > 5:
            a, b = sorted(r.sample(range(2, len(events) + 1), 2))
            forgotten = [e["id"] for e in events[a:b]]
            summary = {"summary": str(len(events)), "summary_offset": 2} if r.random() < .7 else {}
            if last and summary:  # a condenser summarises the last summary, too
                forgotten.append(last)
            e = add("Condensation", "environment", forgotten_event_ids=forgotten, **summary)
            last = e["id"] + "-summary" if summary else last
        else:
            calls = []
            for n in range(2 if r.random() < .15 else 1):
                calls.append(f"c{len(events)}")
                thinking = [{"type": "thinking", "thinking": "…"}] if n == 0 and r.random() < .45 else []
                add("ActionEvent", thought=[] if n else text(), thinking_blocks=thinking, tool_name="f", tool_call_id=calls[-1],
                    tool_call={"name": "f", "arguments": "{}"}, llm_response_id=f"r{response}")
            for call in calls:
                if r.random() < .9:
                    add("ObservationEvent", "environment", tool_call_id=call, observation={"content": text()})
    return events


def contexts(events, View, kinds):
    """What the view shows before each model response: the ids of its messages."""
    made = lambda e: kinds[{"SystemPromptEvent": "MessageEvent", "ObservationEvent": "ObservationBaseEvent"}.get(e["kind"], e["kind"] if e["kind"] in kinds else "Event")](**e)
    seen = set()
    for i, e in enumerate(events):
        response = e.get("llm_response_id")
        if response is None or response in seen or e["kind"] == "Condensation":
            continue
        seen.add(response)
        shown, batch = [], None
        for x in View.from_events([made(e) for e in events[:i]]).events:
            own = getattr(x, "llm_response_id", None)
            if own is None or own != batch:
                shown.append(x.id.removesuffix("-summary"))
            batch = own
        yield shown


def texts(m):
    return m["content"] if isinstance(m["content"], str) else "".join(p["text"] for p in m["content"])


def told(rollout):
    """The same of turnpack's rollout; None for a context that is not known."""
    messages = rollout["messages"]
    for t in rollout["turns"]:
        parts = t.get("context", [{"from": 0, "to": t["message"]}])
        if not isinstance(parts, list):
            yield None
            continue
        yield [s for p in parts for s in ([texts(p["message"])] if p.get("message") else map(texts, messages[p.get("from", 0):p["to"]]))]


def main():
    logging.disable(logging.WARNING)  # the view tells of every event that it drops
    View, kinds = view_of()
    r, logs = random.Random(SEED), {}
    with tempfile.TemporaryDirectory() as folder:
        for k in range(LOGS):
            name = f"{k:06}.jsonl"
            logs[name] = log(r)
            Path(folder, name).write_text("".join(json.dumps(e) + "\n" for e in logs[name]), encoding="utf-8")
        p = subprocess.run([PLUMB, "import", "--format", "openhands-sdk-events", "--to", "native", folder], capture_output=True, check=True)
    rollouts = {Path(x["origin"]["file"]).name: x for x in map(json.loads, p.stdout.splitlines())}
    total = unknown = bad = 0
    for name, events in logs.items():
        want, got = list(contexts(events, View, kinds)), list(told(rollouts[name]))
        if len(want) != len(got):
            raise SystemExit(f"{name}: {len(want)} responses, {len(got)} turns")
        odd = any(e["kind"] == "Condensation" for e in events) or len({e["tool_call_id"] for e in events if e["kind"] == "ObservationEvent"}) < sum(e["kind"] == "ActionEvent" for e in events)
        for k, (w, g) in enumerate(zip(want, got)):
            total += 1
            unknown += g is None
            if (g is None and not odd) or (g is not None and g != w):
                bad += 1
                if bad <= 3:
                    print(f"{name}, turn {k}: the view shows {w}, turnpack {g}\n  {json.dumps(events)[:2000]}")
    if not total or unknown * 4 > total:
        raise SystemExit(f"{unknown} of {total} contexts are not known: nothing is compared")
    print(f"{total} contexts, {unknown} of them not known, {bad} differ")
    raise SystemExit(bad > 0)


main()
