"""Puts the cases that teach the template language before jinja2.

usage: language_cases.py [--write] FILE.txtar...

A file has the sections "NAME/template", and "NAME/text" or "NAME/error" with what jinja2, as
transformers configures it, gives for the variables in "data". Without --write the sections
are compared, and what differs is printed, exit status 1; with it they are written anew. An
error is its kind, with the message of what a template refuses or misses, or with the line
of bad syntax. Cases of kind limit are not
Jinja's and stay as they are.
"""
import json, re, signal, sys
from pathlib import Path
from transformers.utils import chat_template_utils as ctu
from diff_templates import Clock, answer


def sections(text):
    parts = re.split(r"^-- (.+) --\n", text, flags=re.M)
    return parts[0], list(zip(parts[1::2], parts[2::2]))


def main():
    ctu.datetime = Clock
    signal.signal(signal.SIGALRM, lambda *_: (_ for _ in ()).throw(TimeoutError()))
    write, bad, count = sys.argv[1] == "--write", 0, 0
    for path in map(Path, sys.argv[1 + write:]):
        head, parts = sections(path.read_text(encoding="utf-8"))
        files = dict(parts)
        out = head
        for name, body in parts:
            if name == "data":
                out += f"-- {name} --\n{body}"
            if not name.endswith("/template"):
                continue
            case = name.removesuffix("/template")
            old = next(((k, files[f"{case}/{k}"]) for k in ("text", "error") if f"{case}/{k}" in files), None)
            new = old
            if not (old and old[0] == "error" and old[1].startswith("limit")):
                got = answer(lambda: ctu._compile_jinja_template(body.removesuffix("\n")).render(**json.loads(files["data"])))
                if got is None:
                    sys.exit(f"{path}: {case}: jinja2 gives nothing that can be compared")
                if "text" in got:
                    new = ("text", got["text"] + "\n")
                else:
                    says = got["message"] if got["error"] in ("raise_exception", "undefined") else f"line {got['line']}" if got["error"] == "syntax" else ""
                    new = ("error", got["error"] + (": " + says if says else "") + "\n")
            count += 1
            if new != old:
                bad += 1
                if not write:
                    print(f"{path}: {case}: want {new}, have {old}")
            out += f"-- {name} --\n{body}-- {case}/{new[0]} --\n{new[1]}"
        if write:
            path.write_text(out, encoding="utf-8")
    print(f"{count} cases, {bad} differ")
    sys.exit(bad > 0 and not write)


if __name__ == "__main__":
    main()
