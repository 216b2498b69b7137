package bpe

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/turnpack/turnpack/tokenize/bpe/internal/norm"
	"github.com/turnpack/turnpack/tokenize/bpe/internal/pretok"
	"github.com/turnpack/turnpack/tokenize/bpe/internal/rx"
	"github.com/turnpack/turnpack/tokenize/internal/uni"
)

// component is a normalizer, pre-tokenizer, post-processor or decoder. It has the fields of all of them.
type component struct {
	Type string `json:"type"`

	Normalizers   []json.RawMessage `json:"normalizers"`
	PreTokenizers []json.RawMessage `json:"pretokenizers"`
	Processors    []json.RawMessage `json:"processors"`
	Decoders      []json.RawMessage `json:"decoders"`

	Pattern  *patternFile `json:"pattern"`
	Content  *string      `json:"content"`
	Prepend  *string      `json:"prepend"`
	Left     *bool        `json:"strip_left"`
	Right    *bool        `json:"strip_right"`
	Start    int          `json:"start"`
	Stop     int          `json:"stop"`
	Suffix   *string      `json:"suffix"`
	Behavior *string      `json:"behavior"`
	Invert   bool         `json:"invert"`

	AddPrefixSpace *bool   `json:"add_prefix_space"`
	UseRegex       *bool   `json:"use_regex"`
	TrimOffsets    *bool   `json:"trim_offsets"`
	Replacement    *string `json:"replacement"`
	PrependScheme  *string `json:"prepend_scheme"`
	Split          *bool   `json:"split"`
	Individual     *bool   `json:"individual_digits"`
	Delimiter      *string `json:"delimiter"`
	Length         *int    `json:"length"`
}

type patternFile struct {
	String *string `json:"String"`
	Regex  *string `json:"Regex"`
}

func (l *loader) component(field string, raw json.RawMessage) (*component, error) {
	if l.parts++; l.parts > maxParts {
		return nil, l.damaged(field, "the file has more than %d components", maxParts)
	}
	if len(raw) > maxPartBytes {
		return nil, l.damaged(field, "the component has %d bytes, more than %d", len(raw), maxPartBytes)
	}
	if strings.Count(field, "/") > 1+2*maxNesting {
		return nil, l.damaged(field, "the component stands in more than %d others", maxNesting)
	}
	c := &component{}
	if err := json.Unmarshal(raw, c); err != nil {
		return nil, l.damaged(field, "the component cannot be read: %w", err)
	}
	return c, nil
}

func or[T any](p *T, def T) T {
	if p == nil {
		return def
	}
	return *p
}

// each reads the components of a sequence.
func each[T any](field string, parts []json.RawMessage, read func(field string, raw json.RawMessage) (T, error)) ([]T, error) {
	all := make([]T, len(parts))
	for i, raw := range parts {
		var err error
		if all[i], err = read(fmt.Sprintf("%s/%d", field, i), raw); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// normalizer returns the normalizers in the order in which they apply.
func (l *loader) normalizer(field string, raw json.RawMessage) ([]norm.Normalizer, error) {
	if isNull(raw) {
		return nil, nil
	}
	c, err := l.component(field, raw)
	if err != nil {
		return nil, err
	}
	switch c.Type {
	case "NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents", "Strip", "ByteLevel":
		if err := l.checkRewrite(field, c); err != nil {
			return nil, err
		}
	}
	switch c.Type {
	case "Sequence":
		all, err := each(field+"/normalizers", c.Normalizers, l.normalizer)
		return slices.Concat(all...), err
	case "NFC", "NFD", "NFKC", "NFKD":
		l.form = &norm.Form{Compat: len(c.Type) == 4, Compose: c.Type[len(c.Type)-1] == 'C'}
		return []norm.Normalizer{l.form.Apply}, nil
	case "Lowercase":
		return []norm.Normalizer{norm.Lowercase}, nil
	case "StripAccents":
		return []norm.Normalizer{norm.StripAccents}, nil
	case "Strip":
		return []norm.Normalizer{norm.Strip(or(c.Left, true), or(c.Right, true))}, nil
	case "Prepend":
		if or(c.Prepend, "") == "" {
			return nil, l.refuse(field, "a Prepend of nothing, which the reference gives odd offsets")
		}
		return []norm.Normalizer{norm.Prepend(*c.Prepend)}, nil
	case "ByteLevel":
		l.spelled = true
		return []norm.Normalizer{norm.ByteSpelling}, nil
	case "Replace":
		n, ofNothing, err := l.replace(field, c)
		l.inserts = l.inserts || ofNothing
		return []norm.Normalizer{n}, err
	}
	return nil, l.refuse(field, "the normalizer %q", c.Type)
}

// checkRewrite refuses a component that maps all characters if it follows a Replace that may insert characters where the
// text has none.
func (l *loader) checkRewrite(field string, c *component) error {
	if l.inserts {
		return l.refuse(field, "%s after a Replace of what can be nothing: the reference loses count of the characters, and some texts", c.Type)
	}
	return nil
}

// replace reads a Replace; ofNothing reports whether its pattern may match the empty string.
func (l *loader) replace(field string, c *component) (n norm.Normalizer, ofNothing bool, err error) {
	if c.Pattern == nil || c.Content == nil {
		return nil, false, l.damaged(field, "Replace needs pattern and content")
	}
	switch {
	case c.Pattern.String != nil && *c.Pattern.String != "":
		return norm.ReplaceString(*c.Pattern.String, *c.Content), false, nil
	case c.Pattern.Regex != nil:
		re, err := l.regex(field, *c.Pattern.Regex)
		if err != nil {
			return nil, false, err
		}
		return norm.ReplacePattern(re, *c.Content), re.MayBeEmpty(), nil
	}
	return nil, false, l.refuse(field, "a Replace without a pattern")
}

// regex compiles the pattern of a component.
func (l *loader) regex(field, pattern string) (*rx.Regexp, error) {
	l.timed = true
	re, err := rx.Compile(l.u, pattern)
	if err != nil {
		return nil, l.refuse(field+"/pattern", "the regular expression %.200q: %w", pattern, err)
	}
	return re, nil
}

// cutter collects the stages of the pre-tokenizer.
type cutter struct {
	stages   []pretok.Stage
	patterns []string // patterns of the first stages, as long as all are isolating splits
	spelled  bool     // ByteLevel is among the stages
	after    bool     // a stage follows ByteLevel
}

func (c *cutter) add(s pretok.Stage) {
	c.after = c.spelled
	c.stages = append(c.stages, s)
}

// splitter returns one scanner for all stages, or nil.
func (c *cutter) splitter(u *uni.Tables) pretok.Splitter {
	if len(c.patterns) == 0 || len(c.patterns) != len(c.stages)-1 {
		return nil
	}
	return pretok.KnownSequence(u, c.patterns)
}

func (l *loader) preTokenizer(field string, raw json.RawMessage, out *cutter) error {
	if isNull(raw) {
		return nil
	}
	c, err := l.component(field, raw)
	if err != nil {
		return err
	}
	switch c.Type {
	case "Sequence":
		for i, r := range c.PreTokenizers {
			if err := l.preTokenizer(fmt.Sprintf("%s/pretokenizers/%d", field, i), r, out); err != nil {
				return err
			}
		}
		return nil
	case "Split":
		return l.split(field, c, out)
	case "ByteLevel":
		if err := l.checkRewrite(field, c); err != nil {
			return err
		}
		l.byteLevel(c, out)
	case "Metaspace":
		mark, prefix, err := l.metaspace(field, c)
		if err != nil {
			return err
		}
		out.add(pretok.Metaspace(mark, prefix, or(c.Split, true)))
	case "Digits":
		b := pretok.Contiguous
		if or(c.Individual, false) {
			b = pretok.Isolated
		}
		out.add(pretok.Chars(uni.Number, b))
	case "Punctuation":
		b, ok := pretok.BehaviorOf(or(c.Behavior, "Isolated"))
		if !ok {
			return l.damaged(field+"/behavior", "the behavior %q is unknown", *c.Behavior)
		}
		out.add(pretok.Chars(uni.Punct, b))
	case "Whitespace":
		out.add(pretok.Whitespace)
	case "WhitespaceSplit":
		out.add(pretok.Chars(uni.Space, pretok.Removed))
	case "BertPreTokenizer":
		out.add(pretok.Chars(uni.Space, pretok.Removed))
		out.add(pretok.Chars(uni.Punct, pretok.Isolated))
	case "FixedLength":
		n := or(c.Length, 5)
		if n < 1 {
			return l.damaged(field+"/length", "the length %d is not positive", n)
		}
		out.add(pretok.FixedLength(n))
	case "CharDelimiterSplit":
		d := or(c.Delimiter, "")
		if utf8.RuneCountInString(d) != 1 {
			return l.damaged(field+"/delimiter", "the delimiter %q is not one character", d)
		}
		out.add(pretok.Literal(d, pretok.Removed, false))
	default:
		return l.refuse(field, "the pre-tokenizer %q", c.Type)
	}
	return nil
}

func (l *loader) split(field string, c *component, out *cutter) error {
	b, ok := pretok.BehaviorOf(or(c.Behavior, ""))
	if !ok {
		return l.damaged(field+"/behavior", "the behavior %q is unknown", or(c.Behavior, ""))
	}
	if c.Pattern == nil || c.Pattern.String == nil && c.Pattern.Regex == nil {
		return l.damaged(field+"/pattern", "Split needs a pattern, a String or a Regex")
	}
	if c.Pattern.String != nil {
		if *c.Pattern.String == "" {
			return l.refuse(field+"/pattern", "a Split at the empty string")
		}
		out.add(pretok.Literal(*c.Pattern.String, b, c.Invert))
		return nil
	}
	pattern := *c.Pattern.Regex
	// known patterns leave no gaps, so most behaviours are equivalent
	alone := b != pretok.Contiguous && (b != pretok.Removed || c.Invert)
	known := pretok.Known(l.u, pattern)
	if (b == pretok.Isolated || alone && known != nil) && len(out.patterns) == len(out.stages) {
		out.patterns = append(out.patterns, pattern)
	}
	if alone && known != nil {
		out.add(pretok.Pieces(known))
		return nil
	}
	re, err := l.regex(field, pattern)
	if err != nil {
		return err
	}
	out.add(pretok.Split(re, b, c.Invert))
	return nil
}

// byteLevel adds the three steps of ByteLevel, the spelling last.
func (l *loader) byteLevel(c *component, out *cutter) {
	if or(c.AddPrefixSpace, true) {
		out.add(pretok.PrefixSpace)
	}
	if or(c.UseRegex, true) {
		if len(out.patterns) == len(out.stages) {
			out.patterns = append(out.patterns, pretok.GPT2Pattern)
		}
		out.add(pretok.Pieces(pretok.Known(l.u, pretok.GPT2Pattern)))
	}
	out.add(pretok.Spell)
	out.spelled = true
}

// metaspace reads the settings that the pre-tokenizer and the decoder share.
func (l *loader) metaspace(field string, c *component) (mark string, prefix pretok.Prefix, err error) {
	mark = or(c.Replacement, "\u2581")
	if utf8.RuneCountInString(mark) != 1 {
		return "", 0, l.damaged(field+"/replacement", "the replacement %q is not one character", mark)
	}
	scheme := or(c.PrependScheme, "always")
	if c.AddPrefixSpace != nil && !*c.AddPrefixSpace {
		if c.PrependScheme != nil && scheme != "never" {
			return "", 0, l.damaged(field, "add_prefix_space is false and prepend_scheme is %q", scheme)
		}
		scheme = "never"
	}
	switch scheme {
	case "always":
		return mark, pretok.Always, nil
	case "never":
		return mark, pretok.Never, nil
	case "first":
		return mark, pretok.First, nil
	}
	return "", 0, l.damaged(field+"/prepend_scheme", "the scheme %q is unknown", scheme)
}

// trimmer is the effect of a post-processor on offsets.
type trimmer struct {
	prefixSpace bool
}

// postProcessor reads the effect of a post-processor if no tokens are added before or after the text: ByteLevel and
// Roberta may trim offsets.
func (l *loader) postProcessor(field string, raw json.RawMessage) ([]trimmer, error) {
	if isNull(raw) {
		return nil, nil
	}
	c, err := l.component(field, raw)
	if err != nil {
		return nil, err
	}
	switch c.Type {
	case "Sequence":
		all, err := each(field+"/processors", c.Processors, l.postProcessor)
		return slices.Concat(all...), err
	case "ByteLevel", "RobertaProcessing":
		if or(c.TrimOffsets, true) {
			return []trimmer{{prefixSpace: or(c.AddPrefixSpace, true)}}, nil
		}
	case "TemplateProcessing", "BertProcessing":
	default:
		return nil, l.refuse(field, "the post-processor %q", c.Type)
	}
	return nil, nil
}
