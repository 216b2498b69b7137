package parse

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/rollout"
)

// engineReply is the result of an engine's own parser: the content, and calls as name and
// arguments.
type engineReply struct {
	Reasoning, Content string
	Calls              [][2]string
}

type engineCase struct {
	Family, Name, Like, Text string
	Think, In                bool // reasoning parsers were used; the prompt opened the reasoning
	VLLM, SGLang             *engineReply
	Why                      struct{ VLLM, SGLang string } // why the engine differs, as docs/parsers.md explains it
}

func same(m rollout.Message, e *engineReply) bool {
	if e.Calls == nil && strings.TrimSpace(m.Reasoning) != strings.TrimSpace(e.Reasoning) {
		return false
	}
	if strings.TrimSpace(m.Content) != strings.TrimSpace(e.Content) || len(m.ToolCalls) != len(e.Calls) {
		return false
	}
	for i, c := range m.ToolCalls {
		var a, b any
		if json.Unmarshal([]byte(c.Arguments), &a) != nil || json.Unmarshal([]byte(e.Calls[i][1]), &b) != nil {
			return false
		}
		if c.Name != e.Calls[i][0] || !reflect.DeepEqual(a, b) {
			return false
		}
	}
	return true
}

// TestEngines compares each case with the results of the parsers of vLLM and SGLang on the same
// text, run once (the first line of the file names the releases). A difference needs a reason that
// docs/parsers.md explains, and its table counts them.
func TestEngines(t *testing.T) {
	f, err := os.Open("testdata/engines.jsonl")
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	page, err := os.ReadFile("../../docs/parsers.md")
	require.NoError(t, err)
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	var head struct {
		VLLM, SGLang string
		Tools        []rollout.Tool
	}
	require.True(t, lines.Scan())
	require.NoError(t, json.Unmarshal(lines.Bytes(), &head))
	require.True(t, strings.Contains(string(page), "vLLM "+head.VLLM+" and SGLang "+head.SGLang), "docs/parsers.md names other releases")
	type tally struct{ cases, vllm, ofVLLM, sglang, ofSGLang int }
	counts := map[string]*tally{}
	for lines.Scan() {
		var c engineCase
		require.NoError(t, json.Unmarshal(lines.Bytes(), &c))
		reply, _ := read(t, Family(c.Family), Options{Tools: head.Tools, KeepReasoning: !c.Think, InReasoning: c.In}, c.Text)
		n := counts[c.Family]
		if n == nil {
			n = &tally{}
			counts[c.Family] = n
		}
		n.cases++
		for _, e := range []struct {
			name    string
			reply   *engineReply
			why     string
			eq, all *int
		}{{"vLLM", c.VLLM, c.Why.VLLM, &n.vllm, &n.ofVLLM}, {"SGLang", c.SGLang, c.Why.SGLang, &n.sglang, &n.ofSGLang}} {
			if e.reply == nil {
				continue
			}
			*e.all++
			if same(reply.Message, e.reply) {
				*e.eq++
				assert.Empty(t, e.why, "%s, %s: equal to %s", c.Family, c.Name, e.name)
				continue
			}
			assert.NotEmpty(t, e.why, "%s, %s: %q\n%s\n%s: %+v", c.Family, c.Name, c.Text, summary(reply), e.name, *e.reply)
			assert.True(t, strings.Contains(string(page), "**"+e.why+"**"), "docs/parsers.md does not explain %q", e.why)
		}
	}
	require.NoError(t, lines.Err())
	for _, family := range slices.Sorted(maps.Keys(counts)) {
		n := counts[family]
		row := fmt.Sprintf("| `%s` | %d | %d of %d | %d of %d |", family, n.cases, n.vllm, n.ofVLLM, n.sglang, n.ofSGLang)
		assert.True(t, strings.Contains(string(page), row), "docs/parsers.md has no row %s", row)
	}
}
