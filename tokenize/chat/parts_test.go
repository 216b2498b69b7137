package chat

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/tokenize/internal/origin"
)

// Every text of the input has the right part of the message, at any depth and with any keys named like parts below or
// outside of messages.
func TestPartsOfFields(t *testing.T) {
	messages, err := ParseJSON([]byte(`[{"role":"Lrole","content":[{"type":"Lcontent","content":"Lcontent","tool_calls":["Lcontent"]}],"name":"Lother",
		"thinking":"Lreasoning","tool_calls":[{"id":"L0"},{"id":"L1","function":{"name":"L1","role":"L1","arguments":{"content":["L1","L1"]}}}],"extra":{"content":"Lother"}}]`))
	require.NoError(t, err)
	tools, err := ParseJSON([]byte(`[{"content":"Lother","tool_calls":["Lother"],"role":"Lother"}]`))
	require.NoError(t, err)
	c, err := NewConversation(messages, tools, Null(), ConversationOptions{})
	require.NoError(t, err)
	tmpl, err := Compile(`{{ messages|tojson }}{{ tools|tojson }}`, Options{})
	require.NoError(t, err)
	res, err := tmpl.Render(t.Context(), c, Input{})
	require.NoError(t, err)
	names := map[origin.Part]string{origin.PartOther: "other", origin.PartRole: "role", origin.PartContent: "content", origin.PartReasoning: "reasoning"}
	texts, keys := 0, 0
	for s := range res.Spans() {
		switch {
		case s.Field == nil:
		case s.Field.IsKey && strings.Count(s.Field.Path(), "/") == 3: // of a message or a tool
			want := origin.PartOther
			if s.Field.Path() == "/messages/0/role#key" {
				want = origin.PartRole
			}
			require.Equal(t, want, s.Field.Part, s.Field.Path())
			keys++
		case !s.Field.IsKey:
			want := "L" + names[s.Field.Part]
			if s.Field.Part == origin.PartToolCalls {
				want = fmt.Sprint("L", s.Field.Call)
			}
			require.Equal(t, want, res.Text[s.Start:s.End], s.Field.Path())
			texts++
		}
	}
	require.Equal(t, 17, texts) // thinking is written as reasoning_content too
	require.Positive(t, keys)
}

// A key of a message is a single Field, in whatever order and number of renderings it is written.
func TestKeysAreOnePlace(t *testing.T) {
	messages, err := ParseJSON([]byte(`[{"role":"user","content":"x","thinking":"y","n1":1,"n2":2,"n3":3,"n4":4,"n5":5,"n6":6,"tool_calls":[{"function":{"name":"f","arguments":{"a":1}}}]}]`))
	require.NoError(t, err)
	c, err := NewConversation(messages, Null(), Null(), ConversationOptions{})
	require.NoError(t, err)
	tmpl, err := Compile(`{% for m in messages %}{% for k in m %}{{ k }}{% endfor %}{{ m|tojson }}{{ dict(m)|list|join }}{% endfor %}`, Options{})
	require.NoError(t, err)
	var results [4]*Result
	var wait sync.WaitGroup
	for i := range results {
		wait.Go(func() { results[i], _ = tmpl.Render(t.Context(), c, Input{}) })
	}
	wait.Wait()
	places, written := map[string]*Field{}, map[string]int{}
	for _, r := range results {
		require.NotNil(t, r)
		for s := range r.Spans() {
			if s.Field == nil || !s.Field.IsKey {
				continue
			}
			path := s.Field.Path()
			if places[path] == nil {
				places[path] = s.Field
			}
			require.Same(t, places[path], s.Field, path)
			require.Equal(t, s.Field.Key, r.Text[s.Start:s.End])
			written[path]++
		}
	}
	for _, key := range []string{"role", "content", "n1", "n6", "tool_calls"} {
		require.Equal(t, 3*len(results), written["/messages/0/"+key+"#key"], key)
	}
	require.Equal(t, len(results), written["/messages/0/tool_calls/0/function/arguments/a#key"])
	require.Equal(t, len(results), written["/messages/0/tool_calls/0/function/name#key"])
}
