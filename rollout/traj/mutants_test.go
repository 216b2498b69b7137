package traj_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj"
)

// node is a JSON value that keeps the order of keys.
type node struct {
	text string // for a value that is neither object nor list
	keys []string
	kids []*node
	list bool
}

func parseNode(d *json.Decoder) *node {
	tok, err := d.Token()
	if err != nil {
		panic(err)
	}
	n := &node{}
	switch x := tok.(type) {
	case json.Delim:
		n.list = x == '['
		for d.More() {
			if !n.list {
				key, _ := d.Token()
				n.keys = append(n.keys, key.(string))
			}
			n.kids = append(n.kids, parseNode(d))
		}
		_, _ = d.Token()
	default:
		b, _ := json.Marshal(x)
		n.text = string(b)
	}
	return n
}

func (n *node) append(b []byte) []byte {
	if n.text != "" {
		return append(b, n.text...)
	}
	open, end := byte('{'), byte('}')
	if n.list {
		open, end = '[', ']'
	}
	b = append(b, open)
	for i, k := range n.kids {
		if i > 0 {
			b = append(b, ',')
		}
		if !n.list {
			key, _ := json.Marshal(n.keys[i])
			b = append(append(b, key...), ':')
		}
		b = k.append(b)
	}
	return append(b, end)
}

// mutants calls f with one text per place in the value, changed at that place.
func (n *node) mutants(root *node, path string, f func(what string, text []byte)) {
	for i, k := range n.kids {
		at := fmt.Sprint(path, "/", i)
		if !n.list {
			at = path + "/" + n.keys[i]
			key := n.keys[i]
			n.keys[i] = "zz_" + key
			f("rename "+at, root.append(nil))
			n.keys[i] = key
		}
		kid := *k
		for _, other := range []string{"null", "7", `[{"type":"image_url","image_url":{"url":"x"}}]`} {
			*k = node{text: other}
			f("set "+at+" to "+other, root.append(nil))
		}
		*k = kid
		k.mutants(root, at, f)
	}
}

// viewOf returns what reading a text gives: what was said and trained, and what was noted.
func viewOf(t *testing.T, name, text string) (said, noted string, skipped int64, empty bool) {
	t.Helper()
	out, report, err := read(t, name, text, traj.Options{})
	if err != nil {
		return "", "", 1, false
	}
	for _, r := range out {
		said += saidAll(r) + "\n"
		noted += codes(r) + contexts(r)
		for _, turn := range r.Turns {
			if turn.Message < 0 || turn.Incomplete != "" || turn.Context.Unknown {
				noted += "!"
				continue
			}
			m := r.Messages[turn.Message]
			empty = empty || m.Content == "" && m.Reasoning == "" && len(m.ToolCalls) == 0 && len(m.Parts) == 0 && m.Sampled == rollout.SampledByPolicy
		}
	}
	return said, noted, int64(report.Skipped), empty
}

// optional matches keys whose loss cannot be detected: members of arguments and results,
// and optional keys of a message.
var optional = regexp.MustCompile(`/(args|input|arguments|functionCall|function_call|response|json|content)/\w+$|additional_kwargs(/\w+)?$|/(annotations|audience|reasoningText|args|arguments|tool_calls|tool_name|instructions|thought|metadata)$|/(content|id)$|/summary(/0/text)?$` +
	`|/provider_specific_fields(/\w+)?$|/(thinking|i|system_prompt)$|gen_ai\.prompt\.\d\.(tool_calls\.0\.arguments|content)$`)

// If one key of a record is renamed, or its value replaced, no empty text is trained, and
// no other text is read without a note or an error.
func TestEveryKeyCounts(t *testing.T) {
	kit.OneGoroutine(t)
	type fixture struct{ name, format, text string }
	var fixtures []fixture
	for _, c := range frameworks {
		fixtures = append(fixtures, fixture{c.name, c.format, c.text})
	}
	for _, c := range variants {
		fixtures = append(fixtures, fixture{"x.jsonl", c.format, c.text})
	}
	for _, c := range fixtures {
		lines := []string{c.text}
		if strings.HasSuffix(c.name, ".jsonl") {
			lines = strings.Split(c.text, "\n")
		}
		said, noted, _, _ := viewOf(t, c.name, c.text)
		for k, line := range lines {
			if line == "" {
				continue
			}
			d := json.NewDecoder(strings.NewReader(line))
			d.UseNumber()
			root := parseNode(d)
			root.mutants(root, "", func(what string, text []byte) {
				changed := slices.Clone(lines)
				changed[k] = string(text)
				said2, noted2, skipped, empty := viewOf(t, c.name, strings.Join(changed, "\n"))
				if skipped > 0 {
					return
				}
				if empty && !strings.Contains(noted2, "empty_reply") {
					t.Errorf("%s, line %d: %s: a reply that says nothing is trained", c.format, k+1, what)
				}
				if said2 != said && noted2 == noted && strings.HasPrefix(what, "rename") && !optional.MatchString(what) {
					t.Errorf("%s, line %d: %s: other words are read, and nothing is noted", c.format, k+1, what)
				}
			})
		}
	}
}
