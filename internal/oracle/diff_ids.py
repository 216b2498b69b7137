"""Compares `turnpack plumb ids` and `decode` with the reference on random text.

usage: diff_ids.py TURNPACK DEFINITION COUNT [SEED] [CASES_JSONL_GZ] [PATTERN_FILE]

DEFINITION is a tokenizer.json (the reference is PyPI tokenizers), or for PyPI
tiktoken a rank file named as its encoding (cl100k_base.tiktoken) or a folder with
tiktoken.model and tokenizer_config.json, whose split pattern PATTERN_FILE holds.
Texts are random characters of many classes, pieces of the vocabulary and of the
added tokens, and mutations of CASES. All of ids, literal ids, plain ids, byte
offsets and decoded text are compared; the first differences are printed with
their texts, and the exit status is 1.
"""
import gzip, json, os, random, shutil, subprocess, sys, tempfile, time
os.environ["TOKENIZERS_PARALLELISM"] = "false"

ODD = list("\u017f\u212a\u0130\u0131\ufb06\ufb00\u00df\u1e9e\u00a0\u0085\u2028\u2029\u3000\u200b\u200c\u200d\ufeff\u00ad\ufffd\ufffe\U0010ffff\u0000\u0001\u001c\u001f\u007f\u0300\u0301\u0327\u0338\u0345\u05b0\u0e38\u1100\u1161\u11a8\uac00\uac01\u0f71\u0f72\u0344\u212b\u2126\u0958\u2adc\U0001d15e\U00011938\U00011935\U00011930\U0001f468\U0001f3fd\u2581\u0120\u010a\uff5c\u3042\u30a2\u4e00\u9fa5\u9fa6\u3007\u3005\u2e80\u1cd0\u0488\u02bc\u1e0b\u0323\u0307\u1d15e")
RANGES = [(0x20, 0x7E)] * 6 + [(0, 0x1F), (0x80, 0x24F), (0x250, 0x36F), (0x370, 0x52F), (0x590, 0x6FF), (0x900, 0xDFF), (0xE00, 0xEFF), (0x1100, 0x11FF),
          (0x1E00, 0x1FFF), (0x2000, 0x2BFF), (0x3000, 0x30FF), (0x4E00, 0x9FFF), (0xAC00, 0xD7A3), (0xF900, 0xFFFF), (0x10000, 0x1FFFF), (0x1F300, 0x1FAFF), (0x20000, 0x3FFFF), (0x0, 0x10FFFF)]
WORDS = ["'s", "'S", "'re", "'LL", "'\u017f", " ", "  ", "\n", "\r\n", "\n\n", "\t", " \n", "\n ", "   ", "don't", "I'VE", "camelCase", "HTTPServer", "x1y2", "123", "1234567", "3.14", "/", "//", "!!\n", "?\r\n/", "=>", "the", " the", "The", "\u00e9", "e\u0301", "\u4f60\u597d", "\u3053\u3093", "\u0915\u094d", "\ud55c", "<", "<|", "|>", "</s>", "<s>", "<unk>", "[", "]", "{}", "\\n", "\"", "_", "__init__", "    return", "\u2581", "\u2581\u2581", "<0x0A>"]


class Texts:
    def __init__(self, vocab, added, cases, seed):
        self.r, self.long = random.Random(seed), True
        self.vocab, self.added = vocab, added
        self.cases = [json.loads(l)["text"] for l in gzip.open(cases, "rt", encoding="utf-8")] if cases else ["x"]

    def char(self):
        r = self.r
        if r.random() < 0.25:
            return r.choice(ODD)
        while True:
            c = r.randint(*r.choice(RANGES))
            if not 0xD800 <= c <= 0xDFFF:
                return chr(c)

    def part(self):
        r = self.r
        k = r.random()
        if k < 0.35:
            return "".join(self.char() for _ in range(r.randint(1, 8)))
        if k < 0.65:
            return "".join(r.choice(WORDS) for _ in range(r.randint(1, 6)))
        if k < 0.72 and self.added:
            a = r.choice(self.added)
            return a if r.random() < 0.7 else a[: r.randint(0, len(a))] + a[r.randint(0, len(a)) :]
        if k < 0.82:
            return r.choice(self.vocab).replace("\u0120", " ").replace("\u010a", "\n")
        if k < 0.86:
            return r.choice(WORDS + ODD) * r.choice([2, 3, 7, 30, 200 if r.random() < 0.05 else 11])
        c = r.choice(self.cases)
        i = r.randint(0, len(c))
        return c[i : i + r.randint(0, 60)]

    def text(self):
        r = self.r
        s = "".join(self.part() for _ in range(r.choice([1, 1, 2, 3, 5])))
        if self.long and r.random() < 0.02:
            s = "".join(self.part() for _ in range(200))
        if r.random() < 0.3 and s:
            l = list(s)
            for _ in range(r.randint(1, 4)):
                i = r.randrange(len(l))
                k = r.random()
                if k < 0.3:
                    del l[i]
                    if not l:
                        break
                elif k < 0.6:
                    l.insert(i, self.char())
                else:
                    j = r.randrange(len(l))
                    l[i], l[j] = l[j], l[i]
            s = "".join(l)
        return s


def byte_offsets(text, pairs):
    at = [0]
    for c in text:
        at.append(at[-1] + len(c.encode()))
    return [at[x] for p in pairs for x in p]


class HuggingFace:
    def __init__(self, definition):
        import tokenizers
        self.name, self.definition = "tokenizers " + tokenizers.__version__, definition
        raw = json.load(open(definition, encoding="utf-8"))
        self.vocab, self.added = list(raw["model"]["vocab"]), [a["content"] for a in raw.get("added_tokens") or []]
        self.tok = tokenizers.Tokenizer.from_str(json.dumps(raw))
        raw["added_tokens"] = []
        pp = raw.get("post_processor")
        if pp and pp["type"] == "TemplateProcessing":
            raw["post_processor"] = None
        elif pp and pp["type"] == "Sequence":
            pp["processors"] = [p for p in pp["processors"] if p["type"] != "TemplateProcessing"]
        self.bare = tokenizers.Tokenizer.from_str(json.dumps(raw))
        for t in (self.tok, self.bare):
            t.no_truncation(), t.no_padding()

    def answers(self, texts):
        enc = self.tok.encode_batch(texts, add_special_tokens=False)
        self.tok.encode_special_tokens = True
        literal = self.tok.encode_batch(texts, add_special_tokens=False)
        self.tok.encode_special_tokens = False
        plain = self.bare.encode_batch(texts, add_special_tokens=False)
        back = self.tok.decode_batch([e.ids for e in enc], skip_special_tokens=False)
        return [{"ids": e.ids, "offsets": byte_offsets(t, e.offsets), "ids_literal": l.ids, "ids_plain": p.ids, "decoded": d}
                for t, e, l, p, d in zip(texts, enc, literal, plain, back)]


class Ranks:
    def __init__(self, definition, pattern, tmp):
        import tiktoken, tiktoken.load
        if os.path.isdir(definition):
            config = json.load(open(os.path.join(definition, "tokenizer_config.json"), encoding="utf-8"))
            added = {int(i): (a["content"], a["special"]) for i, a in config["added_tokens_decoder"].items()}
            ranks, pattern = tiktoken.load.load_tiktoken_bpe(os.path.join(definition, "tiktoken.model")), open(pattern, encoding="utf-8").read().rstrip("\n")
        else:
            # the published encoding, from this file instead of from the net
            from tiktoken_ext import openai_public
            openai_public.load_tiktoken_bpe = lambda _, expected_hash: tiktoken.load.load_tiktoken_bpe(definition, expected_hash)
            published = openai_public.ENCODING_CONSTRUCTORS[os.path.basename(definition).removesuffix(".tiktoken")]()
            added, ranks, pattern = {i: (c, True) for c, i in published["special_tokens"].items()}, published["mergeable_ranks"], published["pat_str"]
            shutil.copy(definition, os.path.join(tmp, "tiktoken.model"))
            with open(os.path.join(tmp, "tokenizer_config.json"), "w") as f:
                json.dump({"added_tokens_decoder": {i: {"content": c, "special": s} for i, (c, s) in added.items()}}, f)
            definition = tmp
        self.name, self.definition = "tiktoken " + tiktoken.__version__, definition
        self.vocab, self.added = [b.decode(errors="ignore") for b in ranks], [c for c, _ in added.values()]
        self.ordinary = {c for c, special in added.values() if not special}
        self.enc = tiktoken.Encoding("diff", pat_str=pattern, mergeable_ranks=ranks, special_tokens={c: i for i, (c, _) in added.items()})

    def answers(self, texts):
        out = []
        for t in texts:
            ids, at = self.enc.encode(t, allowed_special="all"), [0]
            for b in self.enc.decode_tokens_bytes(ids):
                at.append(at[-1] + len(b))
            out.append({"ids": ids, "offsets": [x for pair in zip(at, at[1:]) for x in pair], "ids_plain": self.enc.encode_ordinary(t),
                        "ids_literal": self.enc.encode(t, allowed_special=self.ordinary, disallowed_special=()), "decoded": self.enc.decode(ids)})
        return out


def main():
    binary, definition, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    seed = int(sys.argv[4]) if len(sys.argv) > 4 else int(time.time())
    bad, done = 0, 0
    with tempfile.TemporaryDirectory() as tmp:
        reference = HuggingFace(definition) if definition.endswith(".json") else Ranks(definition, sys.argv[6] if len(sys.argv) > 6 else None, tmp)
        gen = Texts(reference.vocab, reference.added, sys.argv[5] if len(sys.argv) > 5 else None, seed)
        path = os.path.join(tmp, "in.jsonl")

        def run(verb, *flags):
            p = subprocess.run([binary, "plumb", verb, "--errors=data", "--tokenizer", reference.definition, *flags, path], capture_output=True, check=True)
            return [json.loads(l) for l in p.stdout.split(b"\n") if l]

        while done < count:
            texts = [gen.text() for _ in range(min(20000, count - done))]
            done += len(texts)
            want = reference.answers(texts)
            with open(path, "w", encoding="utf-8") as f:
                for i, t in enumerate(texts):
                    f.write(json.dumps({"id": i, "text": t, "ids": want[i]["ids"]}) + "\n")
            ours, literal, plain, decoded = run("ids", "--offsets"), run("ids", "--literal"), run("ids", "--plain"), run("decode")
            for i, t in enumerate(texts):
                got = {"ids": ours[i].get("ids"), "offsets": ours[i].get("offsets"), "ids_literal": literal[i].get("ids"), "ids_plain": plain[i].get("ids"), "decoded": decoded[i].get("text")}
                if got != want[i]:
                    bad += 1
                    if bad <= 10:
                        field = next(k for k in got if got[k] != want[i][k])
                        print(f"{field} of {t!r}:\n  got  {str(got[field])[:600]}\n  want {str(want[i][field])[:600]}\n  {ours[i].get('error')}")
    name = os.path.basename(definition)
    print(f"{os.path.basename(os.path.dirname(definition)) if name == 'tokenizer.json' else name}: {done} texts, seed {seed}, {bad} differ ({reference.name})")
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
