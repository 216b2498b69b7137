package engine

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// someMember is a member of a reply, and what a client receives of it: "" = nothing.
type someMember struct{ text, told string }

// someObject writes members in a random order, and what remains of them.
func someObject(rng *rand.Rand, members []someMember) (text, told string) {
	rng.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	space := func() string { return []string{"", " ", "\n  "}[rng.IntN(3)] }
	var all, kept []string
	for _, m := range members {
		if rng.IntN(3) == 0 {
			continue
		}
		all = append(all, space()+m.text+space())
		if m.told != "" {
			kept = append(kept, m.told)
		}
	}
	return "{" + strings.Join(all, ",") + "}", "{" + strings.Join(kept, ",") + "}"
}

func keptIf(keep bool, text, otherwise string) someMember {
	if keep {
		return someMember{text, text}
	}
	return someMember{text, otherwise}
}

// Strip removes what the client did not ask for, wherever it appears, and nothing else.
func TestStripAnywhere(t *testing.T) {
	rng := rand.New(rand.NewPCG(26, 3))
	same := func(s string) someMember { return someMember{s, s} }
	for range 5000 {
		r := &Request{Raw: []byte("{}"), KeepUsage: rng.IntN(2) == 0, KeepLogprobs: rng.IntN(2) == 0, KeepIDs: rng.IntN(2) == 0}
		stream := rng.IntN(2) == 0
		var choices, told []string
		for i := range rng.IntN(3) {
			a, b := someObject(rng, []someMember{same(fmt.Sprintf(`"index":%d`, i)), same(`"delta":{"content":"a, b","token_ids":[7]}`), same(`"finish_reason":"stop"`), same(`"mine":[1, {"usage":2}]`),
				keptIf(r.KeepIDs, `"token_ids":[1,2]`, ""), keptIf(r.KeepIDs, `"prompt_token_ids":null`, ""), {`"meta_info":{"weight_version":"4"}`, ""},
				keptIf(r.KeepLogprobs, `"logprobs":{"content":[{"token":"}","logprob":-0.5},{"token":"a","logprob":-1}]}`, `"logprobs":null`)})
			choices, told = append(choices, a), append(told, b)
		}
		usage := someMember{`"usage":{"prompt_tokens":3,"completion_tokens":2}`, ""}
		if r.KeepUsage || !stream {
			usage.told = usage.text
		}
		list := someMember{`"choices":[` + strings.Join(choices, ", ") + `]`, `"choices":[` + strings.Join(told, ",") + `]`}
		text, want := someObject(rng, []someMember{same(`"id":"c1"`), same(`"model":"m"`), same(`"created":1`), keptIf(r.KeepIDs, `"prompt_token_ids":[5, 6]`, ""), usage, list})
		if stream && !r.KeepUsage && strings.Contains(text, `"usage":{"prompt`) && (len(choices) == 0 || !strings.Contains(text, `"choices"`)) {
			want = ""
		}
		d := &decoder{}
		c, err := d.completion([]byte(text), r, stream)
		require.NoError(t, err, "%s", text)
		require.NotNil(t, c.Raw)
		require.Equal(t, compact(t, want), compact(t, string(c.Raw)), "%s", text)
	}
}

func compact(t *testing.T, text string) string {
	t.Helper()
	if text == "" {
		return ""
	}
	var b bytes.Buffer
	require.NoError(t, json.Compact(&b, []byte(text)), "%s", text)
	return b.String()
}
