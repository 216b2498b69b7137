package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
)

// Each group draws one of the two keys and one of the four values.
var (
	keys   = []string{"a", "b"}
	values = []string{"aa", "ab", "ba", "bb"}
)

const schema = `[{"type":"function","function":{"name":"get","description":"Tells the value of a key.","parameters":{"type":"object","properties":{"key":{"type":"string"}},"required":["key"]}}}]`

// task is the key and value of a group's rollouts.
type task struct{ key, value string }

func newTask(r *rand.Rand) task { return task{keys[r.IntN(len(keys))], values[r.IntN(len(values))]} }

// maxReplyTokens is the largest number of tokens of a reply.
const maxReplyTokens = 5

// grade returns 1 for exactly the value, 0.5 for an answer that begins with it, else 0.
func (t task) grade(answer string, ended bool) float64 {
	switch want := t.value; {
	case answer == want && ended:
		return 1
	case strings.HasPrefix(answer, want):
		return 0.5
	}
	return 0
}

// agent calls the model through the service, like any client of chat completions.
type agent struct {
	http   *http.Client
	url    string // of the service
	id     string // of the session
	parent string // session of the agent that called this subagent, "" = none
	seed   uint64
}

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
	Calls   []call `json:"tool_calls,omitempty"`
	CallID  string `json:"tool_call_id,omitempty"`
}

type call struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

func (a *agent) post(ctx context.Context, path string, body, answer any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, a.url+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	if a.parent != "" {
		r.Header.Set("X-Parent-Session-Id", a.parent)
	}
	res, err := a.http.Do(r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if text, err = io.ReadAll(res.Body); err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s: %s", path, res.Status, bytes.TrimSpace(text))
	}
	return json.Unmarshal(text, answer)
}

// ask makes one call to the model.
func (a *agent) ask(ctx context.Context, messages []message, turn int) (m message, ended bool, err error) {
	var reply struct {
		Choices []struct {
			Message message
			Finish  string `json:"finish_reason"`
		}
	}
	err = a.post(ctx, "/rollouts/"+a.id+"/v1/chat/completions", map[string]any{"model": "learn", "messages": messages, "tools": json.RawMessage(schema), "max_tokens": maxReplyTokens, "temperature": 1,
		"seed": hash(a.seed, a.id, turn)}, &reply)
	if err == nil && len(reply.Choices) != 1 {
		err = fmt.Errorf("the reply has %d choices", len(reply.Choices))
	}
	if err != nil {
		return m, false, err
	}
	return reply.Choices[0].Message, reply.Choices[0].Finish != "length", nil
}

// playTask are the rollouts of each task. lost means that there returned false, that is, the
// tool was lost, which is not the policy's fault.
var playTask = map[string]func(a *agent, ctx context.Context, t task, there func() bool) (reward float64, lost bool, err error){
	"lookup":   (*agent).lookup,
	"subagent": (*agent).delegate,
}

// lookup is the tool task: the user names a key, the tool get returns its value, and the
// answer must be exactly that value. get knows only the named key; a rollout that asks
// for the other one ends.
func (a *agent) lookup(ctx context.Context, t task, there func() bool) (reward float64, lost bool, err error) {
	messages := []message{{Role: "user", Content: t.key}}
	m, _, err := a.ask(ctx, messages, 0)
	if err != nil {
		return 0, false, err
	}
	var arguments struct{ Key string }
	if len(m.Calls) == 0 || m.Calls[0].Function.Name != "get" || json.Unmarshal([]byte(m.Calls[0].Function.Arguments), &arguments) != nil {
		return 0, false, nil // the policy answered without calling the tool
	}
	if !there() {
		return 0, true, nil
	}
	if arguments.Key != t.key {
		return 0, false, nil
	}
	if m.Role = "assistant"; strings.Contains(m.Content, "<") {
		m.Content = "" // control tokens as text: the next prompt has only the call
	}
	messages = append(messages, m, message{Role: "tool", Content: t.value, CallID: m.Calls[0].ID})
	m, ended, err := a.ask(ctx, messages, 1)
	return t.grade(m.Content, ended && len(m.Calls) == 0), false, err
}

// delegate is the subagent task: the user gives a value, the reply is the brief of a
// subagent, and the subagent's answer must be that value. The subagent sees only the
// brief, so the policy has to learn a code for the values.
func (a *agent) delegate(ctx context.Context, t task, there func() bool) (reward float64, lost bool, err error) {
	m, _, err := a.ask(ctx, []message{{Role: "user", Content: t.value}}, 0)
	if err != nil || !there() {
		return 0, err == nil, err
	}
	brief := strings.Map(func(c rune) rune { // drops control tokens written as text
		if strings.ContainsRune("ab", c) {
			return c
		}
		return -1
	}, m.Content)
	sub := &agent{http: a.http, url: a.url, id: a.id + "-sub", parent: a.id, seed: a.seed}
	m, ended, err := sub.ask(ctx, []message{{Role: "system", Content: brief}}, 0)
	return t.grade(m.Content, ended && len(m.Calls) == 0), false, err
}

func hash(seed uint64, id string, turn int) uint32 {
	h := fnv.New32a()
	fmt.Fprint(h, seed, id, turn)
	return h.Sum32() >> 1
}
