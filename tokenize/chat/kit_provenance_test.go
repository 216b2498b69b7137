package chat

import (
	"fmt"
	"sort"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/turnpack/turnpack/internal/kit"
)

// spansByPath returns, for each field path, a list of [out_start, out_end, field_start, field_end].
func spansByPath(r *Result) map[string][][4]int {
	out := map[string][][4]int{}
	for s := range r.Spans() {
		if s.Field != nil {
			p := s.Field.Path()
			out[p] = append(out[p], [4]int{s.Start, s.End, s.FieldStart, s.FieldEnd})
		}
	}
	return out
}

// marked reports whether the kit marks strings of messages at this path. It never marks roles, null content, the keys
// and types of content parts, and the types of tool calls.
func marked(f *Field) bool {
	e := f.Elements()
	if e[0] != "messages" || f.Scalar || e[2] == "role" {
		return false
	}
	if e[2] == "tool_calls" && len(e) == 5 && e[4] == "type" {
		return false
	}
	return !(e[2] == "content" && len(e) == 5 && e[4] != "text") && !(f.IsKey && e[len(e)-1] == "text")
}

type kitField struct {
	Path   string   `json:"path"`
	Status string   `json:"status"`
	Spans  [][4]int `json:"spans"`
	Outer  [][2]int `json:"outer"`
	Shared bool     `json:"shared"`
}

type kitProvenance struct {
	ID       string     `json:"id"`
	Fields   []kitField `json:"fields"`
	Complete bool       `json:"complete"`
}

func TestKitProvenance(t *testing.T) {
	kit.OneGoroutine(t)
	want := map[string]*kitProvenance{}
	for p := range kit.Lines[*kitProvenance](t, kit.Dir(t, "conformance", "templates", "provenance.jsonl.gz")) {
		want[p.ID] = p
	}
	count := map[string]int{}
	problems := map[string]int{}
	report := func(id, what string, args ...any) {
		problems[what]++
		if problems[what] < 6 {
			t.Errorf("%s: %s: %s", id, what, fmt.Sprintln(args...))
		}
	}
	kitCases(t, func(c *kit.TemplateGolden, r *Result, err error) {
		p := want[c.ID]
		if p == nil || err != nil {
			return
		}
		got := spansByPath(r)
		listed := map[string]bool{}
		for _, f := range p.Fields {
			listed[f.Path] = true
			count[f.Status]++
			if f.Shared {
				count["shared"]++
				continue
			}
			switch spans := got[f.Path]; f.Status {
			case "exact":
				if !assert.ObjectsAreEqual(f.Spans, spans) {
					report(c.ID, "exact field differs", f.Path, "want", f.Spans, "got", spans)
				}
			case "absent":
				if len(spans) > 0 {
					report(c.ID, "absent field rendered", f.Path, "got", spans)
				}
			case "trimmed":
				for _, w := range f.Spans {
					if !covers(spans, w) {
						report(c.ID, "trimmed field not covered", f.Path, "want", f.Spans, "got", spans)
					}
				}
			case "transformed":
				for _, w := range f.Spans {
					if !traced(r, f.Path, w) {
						report(c.ID, "transformed field not covered", f.Path, "want", f.Spans, "outer", f.Outer, "got", spans, r.Text[w[0]-20:w[1]+20])
					}
				}
			}
		}
		if p.Complete {
			for s := range r.Spans() {
				if s.Field != nil && marked(s.Field) && !listed[s.Field.Path()] {
					report(c.ID, "unlisted field in a complete case", s.Field.Path(), s)
				}
			}
		}
	})
	keys := make([]string, 0, len(count))
	for k := range count {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	for _, k := range keys {
		t.Log(k, count[k])
	}
	t.Log(problems)
	assert.Equal(t, 18499, count["exact"], "exact fields of the kit")
}

// traced reports whether the first and the last byte of a piece of a transformed field come from the positions that
// the kit names. The kit fills in what lies between two traced characters by comparing text, although the template
// may have written the same text itself.
func traced(r *Result, path string, w [4]int) bool {
	ok := func(out, field int) bool {
		for s := range r.Spans() {
			if s.Field != nil && s.Start <= out && out < s.End && s.Field.Path() == path {
				return !s.Exact && s.FieldStart <= field && field < s.FieldEnd || s.Exact && field-s.FieldStart == out-s.Start
			}
		}
		return false
	}
	return ok(w[0], w[2]) && ok(w[1]-1, w[3]-1)
}

// covers reports whether the traced pieces contain w: each byte of its output range comes from the field, and
// unchanged pieces come from the same position.
func covers(spans [][4]int, w [4]int) bool {
	at := w[0]
	for _, s := range spans {
		if s[1] <= at {
			continue
		}
		if s[0] > at {
			return false
		}
		if s[1]-s[0] == s[3]-s[2] && s[0]-s[2] != w[0]-w[2] {
			return false
		}
		at = min(s[1], w[1])
		if at == w[1] {
			return true
		}
	}
	return at == w[1]
}
