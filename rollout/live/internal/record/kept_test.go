package record

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/live/internal/segment"
)

// filler sets about one field in four to random values, so that fields are tested alone and together.
type filler struct {
	*rand.Rand
	all bool
}

func (f filler) fill(v reflect.Value) {
	if !f.all && f.IntN(4) > 0 {
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString([]string{"", "a", "é<&>\u2028\"\\\n", "assistant", "user", "\xff", "tool"}[f.IntN(7)])
	case reflect.Bool:
		v.SetBool(f.IntN(2) == 0)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(int64(f.IntN(5) - 1))
	case reflect.Uint8:
		v.SetUint(uint64(f.IntN(4)))
	case reflect.Float32, reflect.Float64:
		v.SetFloat([]float64{0, -0.25, 1e-7, 3.4e38}[f.IntN(4)])
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		f.fill(v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			f.fill(v.Field(i))
		}
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[json.RawMessage]() {
			v.SetBytes([]byte([]string{`{"a": [1, "b"]}`, `"x"`, `null`, `{"Authorization":"k"}`, `{"capital":1}`}[f.IntN(5)]))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), f.IntN(3), 4))
		for i := range v.Len() {
			f.fill(v.Index(i))
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		if f.IntN(2) == 0 {
			v.SetMapIndex(reflect.ValueOf("k"), reflect.ValueOf(json.RawMessage(`[1, 2]`)))
		}
	}
}

// Kept equals what reading the journal gives, whatever the record contains, and most records take the fast
// path.
func TestKeptIsDecoded(t *testing.T) {
	f := filler{Rand: rand.New(rand.NewPCG(26, 1))}
	written, short := 0, 0
	for range 6_000 {
		e := &Entry{Kind: Reply, Body: &rollout.Rollout{ID: "s", Turns: []rollout.Turn{{Message: -1}}}}
		for _, part := range []any{e.Body, &e.Body.Turns[0], e} {
			if f.IntN(3) > 0 {
				continue
			}
			v := reflect.ValueOf(part).Elem()
			field := v.Field(f.IntN(v.NumField()))
			if v.Type() != reflect.TypeFor[Entry]() || field.Type() != reflect.TypeFor[segment.Place]() {
				f.fill(field)
			}
		}
		if f.IntN(2) == 0 {
			x := &e.Body.Turns
			if len(*x) > 0 {
				(*x)[0].Message, (*x)[0].Output, (*x)[0].Logprobs, (*x)[0].Prompt = -1, []rollout.TokenID{1, 2}, []float32{-0.5, -1e-9}, rollout.PromptIDs{Add: []rollout.TokenID{3}}
				f.fill(reflect.ValueOf(&(*x)[0].Sampling).Elem())
			}
			m := rollout.Message{Role: rollout.RoleAssistant, Content: "é"}
			f.fill(reflect.ValueOf(&m).Elem().Field(f.IntN(9)))
			e.Body.Messages = append(e.Body.Messages, m)
		}
		e.From, e.Size, e.Disk = segment.Place{}, 0, 0
		frame, err := e.Encode(0)
		if err != nil {
			continue
		}
		written++
		want, wrong := Decode(frame[segment.FrameHead:])
		got, err := e.Kept(frame)
		require.Equal(t, wrong == nil, err == nil, "%v, %v: %s", wrong, err, frame)
		if err != nil {
			continue
		}
		if len(want.Blob) == 0 {
			want.Blob, got.Blob = nil, nil
		}
		require.Equal(t, want, got, "%s", frame)
		if e.Body != nil && plain(e.Body) != nil {
			short++
		}
	}
	t.Logf("%d written, %d of them by the short way", written, short)
	require.Greater(t, written, 4_000)
	require.Greater(t, short, 3_000)
}

// FuzzKept: Kept equals what its bytes decode to, whatever they contain: escapes, invalid UTF-8, invalid
// numbers, repeated names.
func FuzzKept(f *testing.F) {
	f.Add("s", "é\u2028<&>\"\\\n\x00", []byte(`{"a": [1, "b"], "a": 1e400}`), []byte{1, 2, 3, 255, 0, 0, 192, 127}, int64(-1), byte(0xff))
	f.Add("\xff\xfe", "\ud7ff\xed\xa0\x80", []byte(`{"authorization":"k","Authorization":"\u006b"}`), []byte{0, 0, 128, 255, 0, 0, 0, 128}, int64(1)<<62, byte(0))
	f.Fuzz(func(t *testing.T, name, text string, settings, numbers []byte, at int64, shape byte) {
		e := &Entry{Kind: Reply, Session: name, Call: text, Why: text, Agent: name, Engine: "http://" + text + "@x", Settings: settings, At: at, First: -at, Base: int(int32(at)), OtherTools: shape&1 != 0, Body: &rollout.Rollout{ID: name}}
		turn := rollout.Turn{Message: -1, ID: name, FinishReason: text, StopString: text}
		for ; len(numbers) >= 4; numbers = numbers[4:] {
			n := binary.LittleEndian.Uint32(numbers)
			turn.Output = append(turn.Output, rollout.TokenID(n))
			turn.Logprobs = append(turn.Logprobs, math.Float32frombits(n))
			turn.Prompt.Add = append(turn.Prompt.Add, rollout.TokenID(n>>1))
			turn.Sampling = &rollout.Sampling{Temperature: new(math.Float32frombits(n)), Seed: new(at)}
			turn.Version = new(int32(n))
		}
		e.Body.Turns = []rollout.Turn{turn}
		m := rollout.Message{Role: []rollout.Role{rollout.RoleUser, rollout.RoleAssistant, rollout.RoleTool, rollout.Role(name)}[shape>>1&3], Content: text, Reasoning: name, Name: text, ToolCallID: name, NoContent: shape&8 != 0}
		if shape&16 != 0 {
			m.ToolCalls = []rollout.ToolCall{{ID: name, Name: text, Arguments: text, ArgumentsText: true}}
		}
		if shape&32 != 0 {
			e.Body.Messages = append(e.Body.Messages, m, m)
		}
		if shape&64 != 0 {
			e.Usage, e.Sessions = &Usage{PromptTokens: int(at)}, []string{name, text}
		}
		frame, err := e.Encode(0)
		if err != nil {
			return
		}
		want, wrong := Decode(frame[segment.FrameHead:])
		got, err := e.Kept(frame)
		require.Equal(t, wrong == nil, err == nil, "%v, %v: %s", wrong, err, frame)
		if err == nil {
			want.Blob, got.Blob = nil, nil
			require.Equal(t, want, got, "%s", frame)
		}
	})
}
