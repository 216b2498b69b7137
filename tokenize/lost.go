package tokenize

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/turnpack/turnpack/rollout"
)

// written is what a rendering holds of one message in a range of its bytes.
type written struct {
	text   string
	fields []field
}

// writes returns what r.text[from:to] holds of message m.
func (r *rendering) writes(m int32, from, to int) written {
	w := written{text: r.text}
	for k := r.after(from); k < len(r.fields) && r.fields[k].start < to; k++ {
		if r.fields[k].message == m {
			w.fields = append(w.fields, r.fields[k])
		}
	}
	return w
}

// calls is how many of a message's first n tool calls are there.
func (w written) calls(n int) (count int) {
	seen := make([]bool, n)
	for _, f := range w.fields {
		if k := int(f.call); f.part == partToolCall && k < n && !seen[k] {
			count, seen[k] = count+1, true
		}
	}
	return count
}

// lacks reports whether some of a recorded text is left out: more than white space
// and the markers of reasoning, which templates write anew.
func (w written) lacks(p part, recorded string) bool {
	size, trimmed := 0, strings.TrimSpace(recorded)
	for _, f := range w.fields {
		if f.part != p {
			continue
		}
		if strings.TrimSpace(w.text[f.start:f.end]) == trimmed { // as nearly always
			return false
		}
		size += f.end - f.start
	}
	if size >= len(recorded) {
		return false
	}
	left := inked(recorded)
	for _, f := range w.fields {
		if f.part == p {
			left -= inked(w.text[f.start:f.end])
		}
	}
	return left > 0
}

// inked is the size of a text without white space and markers of reasoning.
func inked(text string) (n int) {
	for text != "" {
		end := strings.IndexAny(text[1:], "<[") + 1 // where the next marker may begin
		if end == 0 {
			end = len(text)
		}
		if begin := strings.TrimPrefix(text[1:end], "/"); (text[0] == '<' || text[0] == '[') && begin != "" && strings.IndexByte("tTrRsS", begin[0]) >= 0 {
			if at := thinkTag.FindStringIndex(text[:min(end, longestTag)]); at != nil {
				text = text[at[1]:]
				continue
			}
		}
		n += end
		for _, r := range text[:end] {
			if unicode.IsSpace(r) {
				n -= utf8.RuneLen(r)
			}
		}
		text = text[end:]
	}
	return n
}

// closes counts a reply from text that does not close the reasoning which the end of its
// prompt opens, save one that was cut: nobody sampled it there.
func (j *job) closes(t *rollout.Turn, asked, reply string, cut bool) {
	if t.Output != nil || cut || reply == "" {
		return
	}
	closing := func(text string) func([]int) bool {
		return func(at []int) bool { return text[at[0]+1] == '/' }
	}
	tags := thinkTag.FindAllStringIndex(asked, -1)
	if len(tags) == 0 || closing(asked)(tags[len(tags)-1]) {
		return
	}
	if !slices.ContainsFunc(thinkTag.FindAllStringIndex(reply, -1), closing(reply)) {
		j.report.OpenReasoning++
	}
}

// longestTag is more than the bytes of any marker of reasoning.
const longestTag = 32

// complete checks that what was written of message m holds what the policy sampled:
// without any tool call nobody knows that; what else is lost is counted.
func (j *job) complete(m *rollout.Message, w written) error {
	if k, err := j.render.shape.brokenArguments(m); err != nil {
		return rollout.Errorf(rollout.KindInput, rollout.Where{Field: "tool_calls"}, "the arguments of call %d are not JSON (%w), and the chat template writes objects only, so what the model sampled is not known", k, err).
			WithFix("record the engine's token ids, or leave the rollout out")
	}
	calls := w.calls(len(m.ToolCalls))
	if len(m.ToolCalls) > 0 && calls == 0 {
		return rollout.Errorf(rollout.KindTemplate, rollout.Where{}, "the chat template does not write the message's tool calls, so what the model sampled is not known").
			WithFix("use a template with tools, or record the engine's token ids")
	}
	if calls < len(m.ToolCalls) {
		j.report.LostCalls++
	}
	if w.lacks(partReasoning, m.Reasoning) {
		j.report.LostReasoning++
	}
	if w.lacks(partContent, m.Content) {
		j.report.LostContent++
	}
	return nil
}
