package view

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/klauspost/compress/flate"

	"github.com/turnpack/turnpack/examples/turnpack/internal/tokens"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize"
)

// A block is base64 of raw deflate of
//
//	uint32   length of the description
//	…        description: JSON with "columns", then the block's own members
//	…        the columns, each at the next offset that is a multiple of 4
//
// all little-endian. The description gives each column's name, element type and length.

// column is one typed array of a block.
type column struct {
	Name string `json:"name"`
	Type string `json:"type"` // u8, u16, u32, i32, f32
	Len  int    `json:"len"`
	data []byte
}

// pack encodes a block. The first member of description is columns.
func pack(description any, columns []column) (string, error) {
	text, err := json.Marshal(description)
	if err != nil {
		return "", rollout.Errorf(rollout.KindInternal, rollout.Where{}, "description of a block: %w", err)
	}
	buf := binary.LittleEndian.AppendUint32(nil, uint32(len(text)))
	buf = append(buf, text...)
	for _, c := range columns {
		for len(buf)%4 != 0 {
			buf = append(buf, 0)
		}
		buf = append(buf, c.data...)
	}
	var out bytes.Buffer
	w, _ := flate.NewWriter(&out, 6) // fails only for invalid levels
	if _, err = w.Write(buf); err == nil {
		err = w.Close()
	}
	return base64.StdEncoding.EncodeToString(out.Bytes()), err
}

func u8(name string, v []byte) column     { return column{name, "u8", len(v), v} }
func i32(name string, v []int32) column   { return numbers(name, "i32", v) }
func f32(name string, v []float32) column { return numbers(name, "f32", v) }
func u32(name string, v []uint32) column  { return numbers(name, "u32", v) }

func numbers[T any](name, kind string, v []T) column {
	data, _ := binary.Append(nil, binary.LittleEndian, v) // fails only for values without a fixed size
	return column{name, kind, len(v), data}
}

// Flags of a vocabulary entry.
const (
	entrySpecial = 1 << iota
	entryStop
	entryUnknown // not in the vocabulary
)

// vocabulary numbers the ids in use in ascending order, and packs the id, flags and bytes
// of each.
func (b *builder) vocabulary() (string, error) {
	ids := slices.Sorted(maps.Keys(b.used))
	var text, facts []byte
	at := make([]uint32, 1, len(ids)+1)
	for n, id := range ids {
		b.used[id] = n
		spelling, ok := b.spell.Bytes(id)
		var fact byte
		if !ok {
			fact |= entryUnknown
		}
		if b.cut.Special(id) {
			fact |= entrySpecial
		}
		if b.model.IsStop(id) {
			fact |= entryStop
		}
		text, facts = append(text, spelling...), append(facts, fact)
		at = append(at, uint32(len(text)))
	}
	columns := []column{i32("ids", ids), u32("at", at), u8("facts", facts), u8("bytes", text)}
	return pack(map[string]any{"columns": columns}, columns)
}

// message is an entry in the outline of a row.
type message struct {
	Index   int    `json:"index"` // index in the rollout, −1 if unknown
	From    int    `json:"from"`
	Role    string `json:"role"`
	Trained int    `json:"trained"`
	Step    int    `json:"step"` // −1 if nothing in it was sampled
}

// row packs the columns and the outline of a row.
func (b *builder) row(ctx context.Context, s *rollout.Sample) (string, error) {
	columns := []column{numbers("tokens", "u16", entries[uint16](b, s)), weights(s.Weight)}
	if len(b.used) > 1<<16 {
		columns[0] = u32("tokens", entries[uint32](b, s))
	}
	if s.Logprob != nil {
		columns = append(columns, f32("logprob", s.Logprob))
	}
	if s.Credit != nil {
		columns = append(columns, f32("advantage", s.Credit))
	}
	if s.Version != nil {
		columns = append(columns, i32("version", s.Version))
	}
	columns = append(columns, i32("step", s.Turn))
	var fields []string
	if tokens.Traced(s) {
		columns = append(columns, i32("source", s.Source), flags(s.Flags))
		exact, names, err := b.recordedFields(ctx, s)
		if err != nil {
			return "", err
		}
		if fields = names; fields != nil {
			columns = append(columns, exact...)
		} else {
			columns = append(columns, i32("offset", tokens.Offsets(s, b.spell)))
		}
	}
	outline := []message{}
	for _, m := range b.cut.Messages(s) {
		outline = append(outline, outlineEntry(s, m))
	}
	return pack(struct {
		Columns     []column        `json:"columns"`
		Messages    []message       `json:"messages"`
		PromptLen   int             `json:"prompt"`
		Temperature *float64        `json:"temperature"`
		IsLast      bool            `json:"last"`
		SampleIndex int             `json:"index"`
		Fields      []string        `json:"fields,omitempty"`
		Metadata    json.RawMessage `json:"metadata,omitempty"`
	}{columns, outline, s.PromptLen, finite(new(float64(s.Temperature))), s.IsLast, s.SampleIndex, fields, validJSON(s.Metadata)}, columns)
}

// entries returns the tokens of a row as indices into the vocabulary of the page.
func entries[T uint16 | uint32](b *builder, s *rollout.Sample) []T {
	out := make([]T, s.Len())
	for t, id := range s.IDs {
		out[t] = T(b.used[id])
	}
	return out
}

// Names for tokens without a recorded field.
const (
	noField      = ""  // text of the chat template, or a marker of the window policy
	unknownField = "?" // the row holds other text than the record
)

// recordedFields returns for each token the field that records it, as an index into names, and
// the byte range [offset, until) in that field. A "~" before a name means that the bytes
// are spelled differently there. names is nil if the record is unknown.
func (b *builder) recordedFields(ctx context.Context, s *rollout.Sample) (columns []column, names []string, err error) {
	var tracer *tokens.Tracer
	if b.trace != nil {
		tracer = b.trace(s)
	}
	if tracer == nil {
		return nil, nil, nil
	}
	names = []string{noField, unknownField}
	number := map[string]uint32{}
	field, offset, until := make([]uint32, s.Len()), make([]int32, s.Len()), make([]int32, s.Len())
	for t := range s.IDs {
		origins, known, err := tracer.At(ctx, t)
		if err != nil || !known {
			if ctx.Err() != nil {
				return nil, nil, ctx.Err()
			}
			field[t] = 1
			continue
		}
		if len(origins) == 0 {
			continue
		}
		most := slices.MaxFunc(origins, func(a, b tokenize.Origin) int { return (a.End - a.Start) - (b.End - b.Start) })
		name := most.Field
		if most.Message != int(s.Source[t]) && most.Message >= 0 {
			name = fmt.Sprintf("%s of message %d", name, most.Message)
		}
		if !most.Exact {
			name = "~" + name
		}
		if number[name] == 0 {
			number[name] = uint32(len(names))
			names = append(names, name)
		}
		field[t], offset[t], until[t] = number[name], int32(most.From), int32(most.To)
	}
	return []column{u32("field", field), i32("offset", offset), i32("until", until)}, names, nil
}

// validJSON returns raw, or raw as a JSON string if it is not valid JSON.
func validJSON(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 || json.Valid(raw) {
		return raw
	}
	quoted, _ := json.Marshal(string(raw)) // cannot fail for a string
	return quoted
}

func flags(v []rollout.Flag) column {
	out := make([]byte, len(v))
	for t, f := range v {
		out[t] = byte(f)
	}
	return u8("flags", out)
}

// weights returns the weights as a column of bytes if all are 0 or 1, else of floats.
func weights(v []float32) column {
	flags := make([]byte, len(v))
	for t, w := range v {
		switch w {
		case 0:
		case 1:
			flags[t] = 1
		default:
			return f32("weight", v)
		}
	}
	return u8("weight", flags)
}

func outlineEntry(s *rollout.Sample, m tokens.Message) message {
	out := message{Index: m.Index, From: m.From, Role: m.Role, Step: -1}
	for t := m.From; t < m.To; t++ {
		if s.Weight[t] > 0 {
			out.Trained++
		}
		out.Step = max(out.Step, int(s.Turn[t]))
	}
	return out
}
