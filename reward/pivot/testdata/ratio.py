"""Writes ratio.jsonl: pairs of texts and difflib's ratio of them (CPython 3.11).
Usage: python ratio.py > ratio.jsonl"""
import difflib
import json
import random

rng = random.Random(5)
for alphabet in ("ab", "abc \n", "abcdefghijklmnopqrstuvwxyz \n()=", "é漢😀ab\u2003"):
    for n in (0, 1, 6, 60, 199, 200, 201, 430):
        a = [rng.choice(alphabet) for _ in range(n)]
        b = a[:]
        for _ in range(rng.randint(0, 20)):
            if not b:
                break
            i = rng.randrange(len(b))
            kind = rng.random()
            if kind < 0.4:
                b[i] = rng.choice(alphabet)
            elif kind < 0.7:
                del b[i]
            else:
                b[i:i] = [rng.choice(alphabet) for _ in range(rng.randint(1, 6))]
        a, b = "".join(a), "".join(b)
        for x, y in ((a, b), (b, a)):
            print(json.dumps({"a": x, "b": y, "ratio": difflib.SequenceMatcher(None, x, y).ratio()}, ensure_ascii=False))
