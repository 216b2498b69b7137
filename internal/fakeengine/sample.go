package fakeengine

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/turnpack/turnpack/rollout"
)

func hash(seed uint64, ids []rollout.TokenID, more ...int) uint64 {
	h := fnv.New64a()
	b := binary.LittleEndian.AppendUint64(nil, seed)
	for _, id := range ids {
		b = binary.LittleEndian.AppendUint32(b, uint32(id))
	}
	for _, x := range more {
		b = binary.LittleEndian.AppendUint64(b, uint64(x))
	}
	h.Write(b)
	return h.Sum64()
}

var words = strings.Fields("the test fails because of a missing check so I look at what the file says and change one line then run it again which passes now")

// generateReply generates a reply from a seed.
func (s *Server) generateReply(seed uint64, tools []string) string {
	r := rand.New(rand.NewPCG(seed, 1))
	say := func(n int) string {
		var out []string
		for range 1 + r.IntN(n) {
			out = append(out, words[r.IntN(len(words))])
		}
		return strings.Join(out, " ")
	}
	x := Reply{Content: say(20)}
	if r.IntN(2) == 0 {
		x.Reasoning = say(20)
	}
	if len(tools) > 0 && r.IntN(3) > 0 {
		for range 1 + r.IntN(2) {
			arguments, _ := json.Marshal(map[string]string{"command": say(4)}) // cannot fail: strings
			x.Calls = append(x.Calls, Call{tools[r.IntN(len(tools))], arguments})
		}
	}
	return x.text()
}

func (x Reply) text() string {
	if x.Text != "" {
		return x.Text
	}
	var b strings.Builder
	if x.Reasoning != "" {
		b.WriteString("<think>\n" + x.Reasoning + "\n</think>\n\n")
	}
	b.WriteString(x.Content)
	for i, c := range x.Calls {
		if i > 0 || x.Content != "" {
			b.WriteByte('\n')
		}
		arguments := c.Arguments
		if len(arguments) == 0 {
			arguments = json.RawMessage("{}")
		}
		fmt.Fprintf(&b, "<tool_call>\n{\"name\": %q, \"arguments\": %s}\n</tool_call>", c.Name, arguments)
	}
	return b.String()
}

// sampled is one choice of a completion.
type sampled struct {
	ids      []rollout.TokenID
	ends     []int // end offset in text of each id
	text     string
	logprobs []float64
	finish   string
	stop     string
}

func (s *Server) sample(q *request, prompt []rollout.TokenID, choice int) (*sampled, error) {
	var text string
	if n := len(s.opts.Script); n > 0 {
		text = s.opts.Script[q.assistant%n].text()
	} else {
		var tools []struct{ Function struct{ Name string } }
		var names []string
		_ = json.Unmarshal(q.Tools, &tools) // none, or no functions
		for _, t := range tools {
			names = append(names, t.Function.Name)
		}
		text = s.generateReply(hash(s.opts.Seed, prompt[:len(prompt)-q.sampled], choice), names)
	}
	x := &sampled{finish: "stop"}
	cut := len(text)
	stops, _ := q.Stop.([]any)
	if one, ok := q.Stop.(string); ok {
		stops = []any{one}
	}
	for _, stop := range stops {
		if t, ok := stop.(string); ok && t != "" {
			if i := strings.Index(text, t); i >= 0 && i < cut {
				cut, x.stop = i, t
			}
		}
	}
	ids, err := s.encode(text)
	if err != nil {
		return nil, err
	}
	for i := range ids {
		so, err := s.decode(ids[:i+1])
		if err != nil {
			return nil, err
		}
		end := 0 // bytes that agree with text: a partial character decodes differently
		for end < min(len(so), cut) && so[end] == text[end] {
			end++
		}
		x.ids, x.ends = append(x.ids, ids[i]), append(x.ends, end)
		if x.stop != "" && len(so) >= cut+len(x.stop) {
			break
		}
	}
	x.text = text[:cut]
	done := 0 // ids of the reply that the prompt already holds
	if n := q.sampled; n > 0 && n <= len(x.ids) && slices.Equal(prompt[len(prompt)-n:], x.ids[:n]) {
		done = n
		at := x.ends[n-1]
		for at > 0 && at < len(text) && !utf8.RuneStart(text[at]) {
			at-- // the rest of a character comes with its last token
		}
		x.text, x.ids, x.ends = x.text[min(at, len(x.text)):], x.ids[n:], x.ends[n:]
		for i := range x.ends {
			x.ends[i] = max(0, x.ends[i]-at)
		}
		cut -= at
	}
	if x.stop == "" {
		x.ids, x.ends = append(x.ids, s.stopToken()), append(x.ends, len(x.text))
	}
	if most := cmp.Or(q.Max, q.MaxToo); most != nil && *most < len(x.ids) {
		x.finish, x.stop, x.ids, x.ends = "length", "", x.ids[:max(1, *most)], x.ends[:max(1, *most)]
		x.text = x.text[:min(len(x.text), x.ends[len(x.ends)-1])]
	}
	for i, id := range x.ids {
		x.logprobs = append(x.logprobs, -float64(hash(s.opts.Seed, nil, done+i, int(id))%4096)/1024)
	}
	if s.opts.Faults.NaN {
		x.logprobs[len(x.logprobs)/2] = math.NaN()
	}
	if s.opts.Faults.Beyond {
		x.ids[len(x.ids)/2] = 1 << 30
	}
	return x, nil
}
