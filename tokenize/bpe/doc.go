// Package bpe is a byte pair encoding engine in pure Go. Its ids, byte offsets and decoded text equal those of
// Hugging Face tokenizers and, for rank files, of tiktoken. It refuses at load what it cannot reproduce exactly, and
// names the component and the engine that can.
//
// [Open] loads a tokenizer.json, a tiktoken.model or a model folder, [LoadTiktokenFS] a folder of a file system,
// [Parse] the bytes of a tokenizer.json. The tokenizers implement package engine and are safe for concurrent use.
// Share one among callers: it keeps working memory for as many callers as can run at once, up to 12 MiB each, for
// texts of any length.
//
// # How text becomes ids
//
//	text ─ added tokens ─▶ normalizer ─ normalised added tokens ─▶ pieces ─▶ merges ─▶ ids
//
// Invalid UTF-8 counts as U+FFFD, one for each maximal invalid subpart. NUL is an ordinary character. A scanner cuts
// text into pieces if the tokenizer.json has a published pattern. Other patterns use regexp2: the internal package rx
// rewrites them in the syntax that has the same meaning in Oniguruma and regexp2, and refuses those that cannot be
// rewritten. Character classes are the reference's, not those of package unicode.
//
// # What it supports
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
//   - post-processors: only their effect on offsets; tokens that a template, Bert or
//     Roberta processor would add before or after the text are not added
//   - truncation and padding entries are not applied: a text gives exactly its ids,
//     as after no_truncation() and no_padding() in the reference
//
// # Bounds
//
// A tokenizer.json may come from anywhere. A step of normalizing or splitting makes at most 16 times the bytes of the
// text plus 64 KiB, and a step of decoding the same of the tokens' spellings. A match of a pattern without a scanner
// takes at most 1 s, and a text with such patterns 2 s plus 4 µs per byte. A file has at most 256 components and 4
// MiB of added tokens. Exceeding a bound is a KindTokenizer error.
//
// # Why it is fast
//
// A scanner finds where pieces begin in 64 bytes of ASCII at a time, with bit masks of character classes. Pieces
// recur even in new text: a known piece costs a load of 16 bytes, a hash and a cache line of a table that belongs to
// the caller; tables take up to 10 MiB for each concurrent caller. A new piece starts from characters instead of
// bytes where that is exact, and is divided between characters that no merge joins. Short parts are merged by a scan,
// long ones with a tree, and longer ones in overlapping chunks, so that no text takes quadratic time. A call whose
// buffer has room allocates nothing once its pieces are known.
package bpe
