"""Writes tokenize/internal/uni/tables.bin from the reference tokenizer itself.

usage: unicode_tables.py OUT [UNICODE_HF_JSON_GZ]

Every fact is asked of PyPI `tokenizers` 0.23.3 (its regex classes, normal forms,
lower-casing and character predicates), because no Unicode version of another
library agrees with all of them. With the second argument the result is compared
with the facts of the tokenizers kit and a difference is fatal.

Layout, all numbers unsigned LEB128:
  "TPU1", then sections, each: name length, name, body length, body.
  "gc"      runs over the code space: (length, category index)...
  "set:X"   ranges of set X: (gap from the end of the previous range, length)...
  "map:X"   code point (delta), number of replacements, replacements...
  "ccc"     runs: (length, class)...
  "compose" first, second, composed ...
"""
import gzip, io, json, sys, unicodedata
import tokenizers
from tokenizers import Regex, Tokenizer, AddedToken, models, normalizers, pre_tokenizers

CATS = "Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Co Cn Cs".split()
SCRIPTS = """Han Hiragana Katakana Hangul Bopomofo Latin Greek Cyrillic Armenian Hebrew Arabic Thai Lao Tibetan Myanmar Khmer
Georgian Ethiopic Devanagari Bengali Gurmukhi Gujarati Oriya Tamil Telugu Kannada Malayalam Sinhala Mongolian Common Inherited""".split()
ALL = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]
TEXT = "".join(map(chr, ALL))


def regex_set(pattern):
    left = normalizers.Replace(Regex(pattern), "").normalize_str(TEXT)
    return set(ALL) - set(map(ord, left))


def removed_by(pre):
    """Code points that a Removed-style pre-tokenizer drops or isolates."""
    out = set()
    for c in ALL:
        got = pre.pre_tokenize_str("a" + chr(c) + "a")
        if len(got) != 1:
            out.add(c)
    return out


def uleb(out, n):
    while n >= 0x80:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    out.append(n)


def ranges(s):
    out, end = bytearray(), 0
    it = sorted(s)
    i = 0
    while i < len(it):
        j = i
        while j + 1 < len(it) and it[j + 1] == it[j] + 1:
            j += 1
        uleb(out, it[i] - end)
        uleb(out, it[j] - it[i] + 1)
        end = it[j] + 1
        i = j + 1
    return bytes(out)


def runs(values):
    out, i = bytearray(), 0
    while i < len(values):
        j = i
        while j < len(values) and values[j] == values[i]:
            j += 1
        uleb(out, j - i)
        uleb(out, values[i])
        i = j
    return bytes(out)


def mapping(m):
    out, prev = bytearray(), 0
    for c in sorted(m):
        uleb(out, c - prev)
        uleb(out, len(m[c]))
        for x in m[c]:
            uleb(out, x)
        prev = c
    return bytes(out)


def single_word_set():
    vocab = {"q": 0, "<unk>": 1}
    t = Tokenizer(models.BPE(vocab=vocab, merges=[], unk_token="<unk>"))
    t.add_tokens([AddedToken("~~", single_word=True, normalized=False)])
    new = t.token_to_id("~~")
    return {c for c in ALL if new not in t.encode("~~" + chr(c)).ids}


def ccc_values(nfd):
    """Combining classes by observing reordering; unicodedata only proposes."""
    low, high = "\u0334", "\u0345"  # classes 1 and 240
    marks = {1: low, 240: high}
    for c in ALL:
        ch = chr(c)
        k = unicodedata.combining(ch)
        # a mark younger than the reference's tables is a starter there
        if k and nfd(ch) == ch and (nfd(high + ch) != high + ch or nfd(ch + low) != ch + low):
            marks.setdefault(k, ch)
    vals = [0] * 0x110000
    for c in ALL:
        ch = chr(c)
        if nfd(ch) != ch:
            continue
        below = nfd(high + ch) != high + ch  # 0 < ccc < 240
        above = nfd(ch + low) != ch + low    # ccc > 1
        if not below and not above:
            continue
        guess = unicodedata.combining(ch)
        order = sorted(marks)
        # the largest known class k with no reordering of (mark k, ch) is ccc
        ks = [k for k in order if nfd(marks[k] + ch) == marks[k] + ch]
        k = max(ks) if ks else 0
        vals[c] = k
        if k != guess:
            print(f"ccc U+{c:04X}: {k}, unicodedata says {guess}", file=sys.stderr)
    return vals


def main():
    assert tokenizers.__version__ == "0.23.3", tokenizers.__version__
    gc = [len(CATS) - 1] * 0x110000
    for i, cat in enumerate(CATS[:-1]):
        for c in regex_set(r"\p{%s}" % cat):
            gc[c] = i
    sets = {s: regex_set(r"\p{%s}" % s) for s in SCRIPTS}
    sets["White_Space"] = regex_set(r"\s")
    sets["word"] = regex_set(r"\w")
    sets["hex"] = regex_set(r"\h")
    sets["Alphabetic"] = regex_set(r"\p{Alphabetic}")
    sets["added_word"] = single_word_set()
    sets["numeric"] = removed_by(pre_tokenizers.Digits(individual_digits=True))
    sets["punctuation"] = removed_by(pre_tokenizers.Punctuation())
    sets["space"] = removed_by(pre_tokenizers.WhitespaceSplit())
    ws = pre_tokenizers.Whitespace()
    sets["ws_word"] = {c for c in ALL if len(ws.pre_tokenize_str("a" + chr(c))) == 1 and ws.pre_tokenize_str("a" + chr(c))[0][0] != "a"}
    sa = normalizers.StripAccents()
    left = sa.normalize_str(TEXT)
    sets["mark"] = set(ALL) - set(map(ord, left))
    forms = {k: getattr(normalizers, k)().normalize_str for k in ("NFC", "NFD", "NFKC", "NFKD")}
    hangul = range(0xAC00, 0xAC00 + 11172)
    nfd, nfkd, lower = {}, {}, {}
    lc = normalizers.Lowercase().normalize_str
    for c in ALL:
        ch = chr(c)
        if lc(ch) != ch:
            lower[c] = list(map(ord, lc(ch)))
        if c in hangul:
            continue
        d = forms["NFD"](ch)
        if d != ch:
            nfd[c] = list(map(ord, d))
        k = forms["NFKD"](ch)
        if k != d:
            nfkd[c] = list(map(ord, k))
    ccc = ccc_values(forms["NFD"])
    pairs = {}
    for c in nfd:
        dec = unicodedata.decomposition(chr(c))
        if dec and not dec.startswith("<") and len(dec.split()) == 2:
            a, b = (int(x, 16) for x in dec.split())
        else:
            if len(nfd[c]) < 2:
                continue
            a, b = nfd[c][0], nfd[c][-1]
            if len(nfd[c]) > 2:
                a = ord(forms["NFC"]("".join(map(chr, nfd[c][:-1])))[0])
        if forms["NFC"](chr(a) + chr(b)) == chr(c):
            pairs[(a, b)] = c
    sections = [("gc", runs(gc))]
    sections += [("set:" + k, ranges(v)) for k, v in sorted(sets.items())]
    sections += [("map:nfd", mapping(nfd)), ("map:nfkd", mapping(nfkd)), ("map:lower", mapping(lower)), ("ccc", runs(ccc))]
    comp = bytearray()
    for (a, b), c in sorted(pairs.items()):
        uleb(comp, a), uleb(comp, b), uleb(comp, c)
    sections.append(("compose", bytes(comp)))
    out = bytearray(b"TPU1")
    for name, body in sections:
        uleb(out, len(name))
        out += name.encode()
        uleb(out, len(body))
        out += body
        print(f"{name:20} {len(body)}", file=sys.stderr)
    with open(sys.argv[1], "wb") as f:
        f.write(out)
    if len(sys.argv) > 2:
        check(json.load(gzip.open(sys.argv[2])), gc, sets)


def check(facts, gc, sets):
    for name, want in facts["classes"].items():
        w = {c for a, b in want for c in range(a, b + 1)}
        if name.startswith(r"\p"):
            got = {c for c in ALL if CATS[gc[c]].startswith(name[3:-1])}
        elif name == r"\s":
            got = sets["White_Space"]
        else:
            continue
        if got != w:
            sys.exit(f"{name} differs from the kit")
    print("equal to the kit's facts", file=sys.stderr)


main()
