// Package bpe is a byte pair encoding engine in Go alone. Its ids, byte offsets
// and decoded text are those of Hugging Face tokenizers and, for rank files, of
// tiktoken; what it cannot reproduce exactly it refuses at load, naming the
// component and the engine that can.
//
// [Open] takes a tokenizer.json, a tiktoken.model or a model folder, [LoadTiktokenFS] a
// folder of a file system, [Parse] the bytes of a tokenizer.json. What they give is the
// contract of package engine, safe for concurrent use, and callers should share one: it
// keeps working memory for as many callers as can run at once, up to 12 MiB each,
// however long a text was.
//
// # How text becomes ids
//
//	text ─ added tokens ─▶ normalizer ─ normalised added tokens ─▶ pieces ─▶ merges ─▶ ids
//
// Bytes that are not UTF-8 count as U+FFFD, one for each maximal invalid subpart.
// NUL is an ordinary character. Pieces are cut by a scanner where the
// tokenizer.json has a published pattern, and by regexp2 where it has another, which
// package rx inside writes again in the part of the syntax that means the same to
// Oniguruma and regexp2, and refuses where there is none. Character classes are the
// reference's, not those of package unicode.
//
// # What it has
//
//   - models: BPE, byte-level or with byte fallback; unknown tokens, fused or
//     not; ignore_merges; subword prefix and word suffix
//   - normalizers: NFC, NFD, NFKC, NFKD, Lowercase, StripAccents, Strip, Prepend,
//     Replace, ByteLevel, Sequence
//   - pre-tokenizers: Split, ByteLevel, Metaspace, Digits, Punctuation,
//     Whitespace, WhitespaceSplit, CharDelimiterSplit, BertPreTokenizer, FixedLength,
//     Sequence
//   - decoders: ByteLevel, ByteFallback, Fuse, Strip, Replace, Metaspace,
//     BPEDecoder, Sequence
//   - post-processors: their effect on offsets; no token is put before or after,
//     whatever a template or a Bert or Roberta processor would add
//   - truncation and padding entries are not applied: a text gives all its ids and
//     no others, as after no_truncation() and no_padding() in the reference
//
// # Bounds
//
// A tokenizer.json may come from anywhere. Whatever it says, a step of normalizing or
// splitting makes at most 16 times the bytes of the text and 64 KiB of it, and a step
// of decoding the same of the tokens' spellings; a match of a pattern without a
// scanner takes at most 1 s, and a text with such patterns 2 s and 4 µs a byte. A file
// has at most 256 components and 4 MiB of added tokens. Each is a KindTokenizer error.
//
// # Why it is fast
//
// A scanner finds where pieces begin in 64 bytes of ASCII at a time, by bit masks
// of classes of characters. Pieces recur even where text does not. One met before
// costs a load of 16 bytes, a hash and a cache line of a table that the caller at
// work has for itself; tables take up to 10 MiB for each caller at one time. A
// piece not met before begins with characters instead of bytes where that is exact,
// falls into parts between characters that no merge joins, and is merged by a scan
// where it is short, by a tree where it is long, and in overlapping chunks where it
// is longer still, so that no text takes quadratic time. A call whose buffer has
// room allocates nothing once its pieces have been seen.
package bpe
