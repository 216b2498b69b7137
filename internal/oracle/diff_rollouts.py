"""Compares `plumb encode` with apply_chat_template(tokenize=True).

usage: diff_rollouts.py PLUMB TEMPLATES CONVERSATIONS_JSON TOKENIZER_JSON...

Each template stands beside each tokenizer, to which the control tokens of all
templates are added. Each conversation of the templates kit is encoded whole, and
up to its last reply as the prompt of another one, with the document's own edges.
Under parity the ids are those of transformers; under the guard too, where the
recorded text spells no added token. Conversations with images are left out.

What a rollout cannot hold, or holds in the form that the template takes, is given
to transformers in that form (Case.forms), and how often is said. Three refusals are
right: under parity, of a reply whose text spells the stop token, which nobody sampled
there; of whole rows whose template does not write the tool calls, shown by other
calls giving the same ids; and of a reply that transformers refuses there, too. A
conversation whose replies are all empty may have no row, since nothing was sampled.
The first differences are printed and the exit status is 1.
"""
import collections
import copy
import dataclasses
import datetime as dt
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
import transformers
from transformers.utils import chat_template_utils

from model_folder import ModelFolder, control_tokens


class Clock(dt.datetime):
    """The clock of the encoder's default options."""

    @classmethod
    def now(cls, tz=None):
        return cls(1970, 1, 1)


def strings(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from itertools.chain.from_iterable(map(strings, [*value.keys(), *value.values()]))
    elif isinstance(value, list):
        yield from itertools.chain.from_iterable(map(strings, value))


@dataclasses.dataclass
class Case:
    """A conversation, or with reply the prompt of one more reply to it."""
    id: str
    messages: list
    tools: list
    kwargs: dict
    reply: bool

    REPLY = {"role": "assistant", "content": "Reply."}

    def line(self):
        known = "prefilled" if self.reply else "sampled"
        messages = [dict(m, sampled=known) if m["role"] == "assistant" else m for m in self.messages]
        return {"id": self.id, "messages": messages + [dict(self.REPLY, sampled="sampled")] * self.reply, "tools": self.tools, "template_kwargs": self.kwargs,
                "metadata": {"engine": "transformers"}}

    def forms(self):
        """The messages as recorded, then in the forms that the encoder may choose for a template."""
        yield "as recorded", self.messages
        for parts, arguments in itertools.product(("text", "parts", "parts where there are several"), (None, json.loads, json.dumps)):
            messages = copy.deepcopy(self.messages)
            for m in messages:
                recorded = m.get("content") or ""
                text = recorded if isinstance(recorded, str) else "".join(p["text"] for p in recorded)
                m["content"] = [{"type": "text", "text": text}] if parts == "parts" else text
                if parts == "parts where there are several" and isinstance(recorded, list) and len(recorded) > 1:
                    m["content"] = recorded
                for key in ("tool_calls", "reasoning_content"):
                    if not m.get(key, True):
                        del m[key]
                for f in (c["function"] for c in m.get("tool_calls") or []):
                    if arguments and isinstance(f["arguments"], str) == (arguments is json.loads):
                        f["arguments"] = arguments(f["arguments"])
            yield f"content as {parts}, arguments as {({json.loads: 'objects', json.dumps: 'text'}).get(arguments, 'recorded')}", messages

    def other_calls(self):
        """The conversation with other tool calls."""
        messages = copy.deepcopy(self.messages)
        for m in messages:
            for f in (c["function"] for c in m.get("tool_calls") or []):
                f.update(name="another", arguments={"other": "call"})
        return messages


def conversations(path):
    for c in json.loads(Path(path).read_text(encoding="utf-8")):
        messages, seen = c["messages"], []
        if any(isinstance(m.get("content"), list) and any(p["type"] != "text" for p in m["content"]) for m in messages):
            continue
        replied = [m["role"] == "assistant" for m in messages]
        asked = messages[:-1] if replied[-1] else messages
        for s in c["settings"]:
            kwargs = {k: v for k, v in s["kwargs"].items() if not k.endswith("_token")}
            if kwargs in seen:
                continue
            seen.append(kwargs)
            for shown, reply in ((messages, False), (asked, True)):
                if shown and (reply or any(replied)):
                    yield Case(f"{c['id']}/{s['id']}", shown, c.get("tools") or [], kwargs, reply)


class Reference:
    """transformers with one tokenizer and the folder's template."""

    def __init__(self, folder):
        self.folder = folder
        self.tok = transformers.PreTrainedTokenizerFast(tokenizer_file=str(folder.path / "tokenizer.json"))

    def ids(self, case, messages, prompt):
        """The ids, or None and why not."""
        self.tok.bos_token, self.tok.eos_token = self.folder.bos, self.folder.eos
        try:
            return self.tok.apply_chat_template(messages, tools=case.tools or None, chat_template=self.folder.template, add_generation_prompt=prompt, tokenize=True, return_dict=False, **case.kwargs), ""
        except Exception as e:
            return None, f"{type(e).__name__}: {e}"

    def verdict(self, case, got, error):
        """How got agrees, None where it differs."""
        for form, messages in case.forms():
            if self.ids(case, messages, case.reply)[0] == got:
                return form if got else "refused as there"
        if "does not write the message's tool calls" in error and self.ids(case, case.messages, False) == self.ids(case, case.other_calls(), False):
            return "refused: calls not written"
        if error == EMPTY and not any(m.get(key) for m in case.messages if m["role"] == "assistant" for key in ("content", "reasoning_content", "tool_calls")):
            return error
        stop = re.search('the reply holds the stop token "(.*?)" before its end', error)
        if stop and any(stop[1] in str(m.get("content")) for m in case.messages if m["role"] == "assistant"):
            return "refused: a stop token within a reply"
        if error and case.reply and self.ids(case, case.messages + [case.REPLY], False)[0] is None:
            return "refused: no reply there"
        return None

    def show(self, ids):
        return repr(self.tok.decode(ids))[-200:] if ids else ids


EMPTY = "no row: nothing was sampled"


def encode(plumb, folder, cases, mode, specials):
    """(ids, error) of each case; of a prompt those before the reply."""
    p = subprocess.run([plumb, "encode", "--errors=data", "--model", folder.path, "--mode", mode, "--specials", specials, "--edges", "document"],
                       input="".join(json.dumps(c.line()) + "\n" for c in cases), capture_output=True, text=True)
    if p.returncode:
        raise SystemExit(p.stderr)
    for l in p.stdout.splitlines():
        answer = json.loads(l)
        if "error" in answer:
            yield None, answer["error"]["message"]
            continue
        if not answer["rows"]:
            yield None, EMPTY
            continue
        row = answer["rows"][-1]
        yield row["input_ids"][:row["loss_mask"].index(1) if mode == "perstep" else None], ""


def main(plumb, templates, kit, *tokenizers):
    chat_template_utils.datetime = Clock
    cases = list(conversations(kit))
    recorded = set(strings([[c.messages, c.tools] for c in cases]))
    sources = [(p.stem, p.read_bytes().decode()) for p in sorted(Path(templates).glob("*.jinja"))]
    # <required>, which a template makes of a schema's key, is no control token.
    tokens = [t for t in control_tokens(*(s for _, s in sources)) if t.strip("</|>") not in recorded]
    count, bad = collections.Counter(), 0
    for definition in tokenizers:
        with tempfile.TemporaryDirectory() as tmp:
            folder = ModelFolder(tmp, definition, tokens)
            reference = Reference(folder)
            benign = [c for c in cases if not any(a["content"] in s for s in strings([c.messages, c.tools]) for a in folder.added)]
            for name, source in sources:
                folder.put(source)
                for (mode, reply), (specials, among) in itertools.product((("whole", False), ("perstep", True)), (("parity", cases), ("guard", benign))):
                    use = [c for c in among if c.reply == reply]
                    for case, (got, error) in zip(use, encode(plumb, folder, use, mode, specials), strict=True):
                        verdict = reference.verdict(case, got, error)
                        count[verdict] += 1
                        if verdict is None and (bad := bad + 1) <= 10:
                            want, why = reference.ids(case, case.messages, case.reply)
                            print(f"{Path(definition).parent.name} {name} {case.id} {mode} {specials}: got {reference.show(got)} {error}\n  want {reference.show(want)} {why}")
    print(f"{count.total()} cases of {len(sources)} templates and {len(tokenizers)} tokenizers, {bad} differ (transformers {transformers.__version__}); "
          + "; ".join(f"{n} {what}" for what, n in count.most_common() if what))
    sys.exit(bad > 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
