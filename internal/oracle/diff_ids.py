"""Compares `plumb ids` and `decode` with the reference on random text.

usage: diff_ids.py PLUMB DEFINITION COUNT [SEED] [CASES_JSONL_GZ] [PATTERN_FILE]

DEFINITION is a tokenizer.json (the reference is PyPI tokenizers), or for PyPI
tiktoken a rank file named as its encoding (cl100k_base.tiktoken) or a folder with
tiktoken.model and tokenizer_config.json, whose split pattern PATTERN_FILE holds.
Texts are random characters of many classes, pieces of the vocabulary and of the
added tokens, and mutations of CASES; most are short, a few have thousands of
characters. All of ids, literal ids, plain ids, byte offsets and decoded text are
compared; the first differences are printed with their texts, and the exit status
is 1. One process for each processor works; how far they are goes to stderr.
"""
import gzip, itertools, json, multiprocessing, os, random, shutil, subprocess, sys, tempfile, time
os.environ["TOKENIZERS_PARALLELISM"] = "false"

BLOCK = 20000  # texts between two lines of progress; the seed of each is its own
ODD = list("\u017f\u212a\u0130\u0131\ufb06\ufb00\u00df\u1e9e\u00a0\u0085\u2028\u2029\u3000\u200b\u200c\u200d\ufeff\u00ad\ufffd\ufffe\U0010ffff\u0000\u0001\u001c\u001f\u007f\u0300\u0301\u0327\u0338\u0345\u05b0\u0e38\u1100\u1161\u11a8\uac00\uac01\u0f71\u0f72\u0344\u212b\u2126\u0958\u2adc\U0001d15e\U00011938\U00011935\U00011930\U0001f468\U0001f3fd\u2581\u0120\u010a\uff5c\u3042\u30a2\u4e00\u9fa5\u9fa6\u3007\u3005\u2e80\u1cd0\u0488\u02bc\u1e0b\u0323\u0307\u1d15e")
RANGES = [(0x20, 0x7E)] * 6 + [(0, 0x1F), (0x80, 0x24F), (0x250, 0x36F), (0x370, 0x52F), (0x590, 0x6FF), (0x900, 0xDFF), (0xE00, 0xEFF), (0x1100, 0x11FF),
          (0x1E00, 0x1FFF), (0x2000, 0x2BFF), (0x3000, 0x30FF), (0x4E00, 0x9FFF), (0xAC00, 0xD7A3), (0xF900, 0xFFFF), (0x10000, 0x1FFFF), (0x1F300, 0x1FAFF), (0x20000, 0x3FFFF), (0x0, 0x10FFFF)]
WORDS = ["'s", "'S", "'re", "'LL", "'\u017f", " ", "  ", "\n", "\r\n", "\n\n", "\t", " \n", "\n ", "   ", "don't", "I'VE", "camelCase", "HTTPServer", "x1y2", "123", "1234567", "3.14", "/", "//", "!!\n", "?\r\n/", "=>", "the", " the", "The", "\u00e9", "e\u0301", "\u4f60\u597d", "\u3053\u3093", "\u0915\u094d", "\ud55c", "<", "<|", "|>", "</s>", "<s>", "<unk>", "[", "]", "{}", "\\n", "\"", "_", "__init__", "    return", "\u2581", "\u2581\u2581", "<0x0A>"]



def character(r):
    if r.random() < 0.25:
        return r.choice(ODD)
    while True:
        c = r.randint(*r.choice(RANGES))
        if not 0xD800 <= c <= 0xDFFF:
            return chr(c)


LETTERS, HAN = [chr(c) for c in range(97, 123)], [chr(c) for c in range(0x4E00, 0x9FA6)]


class Texts:
    """Random texts of mostly 1 to 60 characters, a few with thousands unless long is False."""

    def __init__(self, vocab, added, cases, seed, long=True):
        self.r, self.long = random.Random(seed), long
        self.vocab, self.added, self.cases = vocab, added, cases
        self.lines = []  # texts that come again inside others: an engine may remember them
        self.chars = [character(self.r) for _ in range(BLOCK)]  # drawing from these is cheap

    def part(self):
        r = self.r
        k = r.random()
        if k < 0.35:
            return "".join(r.choices(self.chars, k=r.randint(1, 8)))
        if k < 0.65:
            return "".join(r.choices(WORDS, k=r.randint(1, 6)))
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
        k = r.random() if self.long else 1
        if k < 0.001:  # one long piece, or nearly, of a few characters
            s = "".join(r.choices(r.choice([r.choices(self.chars, k=r.randint(1, 9)), LETTERS, HAN]), k=r.randint(100, 3000)))
        elif k < 0.02 and self.lines:
            s = r.choice(["", " ", "\n"]).join(r.choices(self.lines, k=r.randint(2, 8)))
        else:
            s = "".join(self.part() for _ in range(r.randint(20, 200) if k < 0.028 else r.choice((1, 2, 2, 3, 4, 5, 6))))
        if s and r.random() < 0.3:
            chars = list(s)
            for _ in range(r.randint(1, 4)):
                i, k = r.randrange(len(chars)), r.random()
                if k < 0.3 and len(chars) > 1:
                    del chars[i]
                elif k < 0.6:
                    chars.insert(i, r.choice(self.chars))
                else:
                    j = r.randrange(len(chars))
                    chars[i], chars[j] = chars[j], chars[i]
            s = "".join(chars)
        if 64 < len(s) < 200 and len(self.lines) < 30:
            self.lines.append(s + r.choice(["", "\n"]))
        return s


def byte_offsets(text, pairs):
    flat = itertools.chain.from_iterable(pairs)
    if text.isascii():
        return list(flat)
    at = [0, *itertools.accumulate(map(len, map(str.encode, text)))]
    return [at[x] for x in flat]


class HuggingFace:
    def __init__(self, definition):
        import tokenizers
        self.name, self.definition = "tokenizers " + tokenizers.__version__, definition
        raw = json.load(open(definition, encoding="utf-8"))
        self.vocab, self.added = list(raw["model"]["vocab"]), [a["content"] for a in raw.get("added_tokens") or []]
        self.added_ids = {a["id"] for a in raw.get("added_tokens") or []}
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
        out = []
        for t, e in zip(texts, self.tok.encode_batch(texts, add_special_tokens=False)):
            ids = e.ids
            out.append({"ids": ids, "offsets": byte_offsets(t, e.offsets), "ids_literal": ids, "ids_plain": ids})
        for o, back in zip(out, self.tok.decode_batch([o["ids"] for o in out], skip_special_tokens=False)):
            o["decoded"] = back
        # where no added token was met, switching them off changes nothing
        met = [k for k, o in enumerate(out) if not self.added_ids.isdisjoint(o["ids"])]
        some = [texts[k] for k in met]
        self.tok.encode_special_tokens = True
        literal = self.tok.encode_batch(some, add_special_tokens=False)
        self.tok.encode_special_tokens = False
        for k, l, p in zip(met, literal, self.bare.encode_batch(some, add_special_tokens=False)):
            out[k]["ids_literal"], out[k]["ids_plain"] = l.ids, p.ids
        return out


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


class Worker:
    """One process: a reference, and the blocks of texts it is given."""

    def __init__(self, args, tmp):
        self.binary, definition, count, self.seed, cases, pattern = args
        self.count, self.file = count, os.path.join(tempfile.mkdtemp(dir=tmp), "in.jsonl")
        self.reference = HuggingFace(definition) if definition.endswith(".json") else Ranks(definition, pattern, os.path.dirname(self.file))
        self.cases = [json.loads(l)["text"] for l in gzip.open(cases, "rt", encoding="utf-8")] if cases else ["x"]

    def run(self, verb, *flags):
        p = subprocess.run([self.binary, verb, "--errors=data", "--tokenizer", self.reference.definition, *flags, self.file], capture_output=True, check=True)
        return p.stdout.splitlines()

    def block(self, k):
        """The number of texts of block k, and the differences."""
        gen = Texts(self.reference.vocab, self.reference.added, self.cases, f"{self.seed} {k}")
        texts = [gen.text() for _ in range(min(BLOCK, self.count - k * BLOCK))]
        want = self.reference.answers(texts)
        with open(self.file, "w", encoding="utf-8") as f:
            for i, (t, w) in enumerate(zip(texts, want)):
                f.write(json.dumps({"id": i, "text": t, "ids": w["ids"]}) + "\n")
        bad = []
        for t, w, *lines in zip(texts, want, self.run("ids", "--offsets"), self.run("ids", "--literal"), self.run("ids", "--plain"), self.run("decode"), strict=True):
            ours, literal, plain, decoded = map(json.loads, lines)
            got = {"ids": ours.get("ids"), "offsets": ours.get("offsets"), "ids_literal": literal.get("ids"), "ids_plain": plain.get("ids"), "decoded": decoded.get("text")}
            if got != w:
                field = next(f for f in got if got[f] != w[f])
                bad.append(f"{field} of {t!r}:\n  got  {str(got[field])[:600]}\n  want {str(w[field])[:600]}\n  {ours.get('error')}")
        return len(texts), bad, self.reference.name


def start(*args):
    global worker
    worker = Worker(*args)


def block(k):
    return worker.block(k)


def main():
    count, more = int(sys.argv[3]), sys.argv[4:] + [None] * 3
    seed, definition = int(more[0] or time.time()), sys.argv[2]
    name = os.path.basename(definition)
    name = os.path.basename(os.path.dirname(definition)) if name == "tokenizer.json" else name
    bad, done, begun, blocks = 0, 0, time.perf_counter(), -(-count // BLOCK)
    with tempfile.TemporaryDirectory() as tmp:
        args = (sys.argv[1], definition, count, seed, more[1], more[2]), tmp
        with multiprocessing.Pool(min(blocks, len(os.sched_getaffinity(0))), start, args) as pool:
            for n, found, reference in pool.imap_unordered(block, range(blocks)):
                for difference in found[: max(0, 10 - bad)]:
                    print(difference)
                done, bad = done + n, bad + len(found)
                print(f"{name}: {done:,} of {count:,} texts, {bad} differ, {time.perf_counter() - begun:.0f} s", file=sys.stderr, flush=True)
    print(f"{name}: {done} texts, seed {seed}, {bad} differ ({reference})")
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
