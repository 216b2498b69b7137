package traj_test

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/jsonl"
	"github.com/turnpack/turnpack/rollout/traj"
)

// qa reads records of a question and its answers.
var qa = traj.Importer{
	Name:  "qa",
	Match: func(b json.RawMessage) bool { return bytes.Contains(b, []byte(`"question"`)) },
	Read: func(b json.RawMessage) ([]*rollout.Rollout, error) {
		var x struct {
			ID, Task, Question string
			Answers            []string
		}
		if err := json.Unmarshal(b, &x); err != nil {
			return nil, err
		}
		if len(x.Answers) == 0 {
			return nil, errors.New("nobody answered")
		}
		var out []*rollout.Rollout
		for k, a := range x.Answers {
			out = append(out, &rollout.Rollout{ID: fmt.Sprint(x.ID, "/", k), Instance: x.Task, Messages: []rollout.Message{
				{Role: rollout.RoleUser, Content: x.Question},
				{Role: rollout.RoleAssistant, Content: a, Sampled: rollout.SampledByPolicy},
			}})
		}
		return out, nil
	},
}

// A user's format works like built-in ones: archives, lists, error locations, groups,
// rewards, ids.
func TestImportersOfUsers(t *testing.T) {
	const good, bad = `{"ID":"a","Task":"t","question":"q","Answers":["x","y"]}`, `{"ID":"b","question":"q"}`
	dir := t.TempDir()
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	_, err := w.Write([]byte(good + "\n" + bad + "\n" + chat("c") + "\n"))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	write(t, dir, "a.jsonl.gz", z.Bytes())
	var b bytes.Buffer
	zw := zip.NewWriter(&b)
	f, err := zw.Create("m.json")
	require.NoError(t, err)
	_, err = f.Write([]byte("[" + good + "]"))
	require.NoError(t, err)
	require.NoError(t, zw.Close())
	write(t, dir, "b.zip", b.Bytes())
	rewards, err := traj.LoadRewards([]string{write(t, t.TempDir(), "r.jsonl", []byte(`{"id":"a/0","reward":1}`+"\n"))})
	require.NoError(t, err)
	r, err := traj.Open([]string{dir}, traj.Options{Importers: []traj.Importer{qa}, Rewards: []*traj.Rewards{rewards}})
	require.NoError(t, err)
	var ids []string
	for x, err := range r.All() {
		require.NoError(t, err)
		require.NoError(t, x.Validate())
		ids = append(ids, fmt.Sprint(x.Origin.Format, " ", x.Group, " ", x.Index))
		if x.ID == "a/0" {
			require.Equal(t, 1.0, *x.Outcome.Reward)
		}
	}
	require.Equal(t, []string{"qa t 0", "qa t 1", "openai-chat c 0", "qa t 2", "qa t 3"}, ids)
	report := r.Report()
	require.Equal(t, map[string]int{"qa": 4, "openai-chat": 1}, report.Formats)
	require.Equal(t, 1, report.Skipped)
	require.ErrorContains(t, report.Errors[0], filepath.Join(dir, "a.jsonl.gz")+":2: nobody answered")

	out, _, err := traj.ReadAll(strings.NewReader(good), "x.json", traj.Options{Format: "qa", Importers: []traj.Importer{qa}, OnError: rollout.OnErrorStop})
	require.NoError(t, err)
	require.Len(t, out, 2)
	for _, x := range []traj.Importer{{}, {Name: "native", Match: qa.Match, Read: qa.Read}} {
		require.ErrorContains(t, traj.Options{Importers: []traj.Importer{x}}.Validate(), "Options.Importers/0")
	}
}

func ExampleImporter() {
	own := traj.Importer{
		Name:  "qa",
		Match: func(b json.RawMessage) bool { return bytes.Contains(b, []byte(`"question"`)) },
		Read: func(b json.RawMessage) ([]*rollout.Rollout, error) {
			var x struct{ Question, Answer string }
			if err := json.Unmarshal(b, &x); err != nil {
				return nil, err
			}
			return []*rollout.Rollout{{Messages: []rollout.Message{
				{Role: rollout.RoleUser, Content: x.Question},
				{Role: rollout.RoleAssistant, Content: x.Answer, Sampled: rollout.SampledByPolicy},
			}}}, nil
		},
	}
	in := strings.NewReader(`{"question": "2+2?", "answer": "4"}`)
	out, _, err := traj.ReadAll(in, "answers.jsonl", traj.Options{Importers: []traj.Importer{own}, OnError: rollout.OnErrorStop})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(out[0].Origin.Format, out[0].Messages[1].Content)
	// Output: qa 4
}

// A recorded call in memory is read as an exchange; no goroutine remains.
func TestAnExchangeInMemory(t *testing.T) {
	read := func(request, response string) (*rollout.Rollout, error) {
		out, _, err := traj.ReadAll(strings.NewReader(`{"request":`+request+`,"response":`+response+`}`), "call.json", traj.Options{OnError: rollout.OnErrorStop})
		if err != nil {
			return nil, err
		}
		require.Len(t, out, 1)
		return out[0], nil
	}
	const request = `{"messages":[{"role":"user","content":"q"}],"temperature":0.5}`
	before := runtime.NumGoroutine()
	for range 100 {
		r, err := read(request, `{"id":"r","prompt_token_ids":[1],"choices":[{"message":{"role":"assistant","content":"a"},"token_ids":[2]}]}`)
		require.NoError(t, err)
		require.Equal(t, "r user assistant", r.ID+" "+roles(r))
		require.Equal(t, []rollout.TokenID{2}, r.Turns[0].Output)
	}
	require.LessOrEqual(t, runtime.NumGoroutine(), before+1)
	r, err := read(request, `{"id":"m","role":"assistant","content":[{"type":"text","text":"a"}]}`)
	require.NoError(t, err)
	require.Equal(t, "anthropic-messages", r.Origin.Format)
	r, err = read(`{"input":"q"}`, `{"id":"x","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a"}]}]}`)
	require.NoError(t, err)
	require.Equal(t, "a", r.Messages[1].Content)
	_, err = read(request, `{"error":{"message":"no such model"}}`)
	require.ErrorContains(t, err, "no such model")
}

// A record of the documented native format is recognized without a version and turns, too.
// A record of another format with keys that only the native format reads is refused.
func TestOneRuleForNative(t *testing.T) {
	const q, a = `{"role":"user","content":"q"}`, `{"role":"assistant","content":"a"}`
	const shown = `{"role":"assistant","content":"a","sampled":"demonstration"}`
	for text, check := range map[string]func(r *rollout.Rollout){
		`{"id":"x","messages":[` + q + `,` + shown + `,` + q + `,{"role":"assistant","content":"b","sampled":"sampled"}],"model":"m"}`: func(r *rollout.Rollout) {
			require.Equal(t, rollout.SampledDemonstration, r.Messages[1].Sampled)
			require.Equal(t, rollout.SampledByPolicy, r.Messages[3].Sampled)
		},
		`{"id":"x","messages":[` + q + `,` + a + `],"status":"aborted"}`: func(r *rollout.Rollout) { require.Equal(t, rollout.StatusAborted, r.Status) },
		`{"id":"x","messages":[` + q + `,` + a + `],"outcome":{"resolved":false,"verdict":"infra_error"}}`: func(r *rollout.Rollout) {
			require.Equal(t, rollout.VerdictInfraError, r.Outcome.Verdict)
		},
		`{"id":"x","messages":[` + q + `,` + a + `],"failure":{"reason":"sandbox"},"model":"m"}`: func(r *rollout.Rollout) { require.Equal(t, "sandbox", r.Failure.Reason) },
		`{"id":"x","messages":[` + q + `,` + a + `],"steps":[{"step":0,"score":1}]}`:             func(r *rollout.Rollout) { require.Len(t, r.Steps, 1) },
		`{"messages":[` + q + `,` + a + `],"template_kwargs":{"enable_thinking":false}}`: func(r *rollout.Rollout) {
			require.Equal(t, "false", string(r.TemplateKwargs["enable_thinking"]))
		},
		`{"messages":[` + q + `,` + a + `],"tools":[],"group":"g"}`:            func(r *rollout.Rollout) { require.Equal(t, "g", r.Group) },
		`{"messages":[` + q + `,` + a + `],"index":2}`:                         func(*rollout.Rollout) {}, // without a group, the rollout is the first of its own group
		`{"messages":[` + q + `,` + a + `],"instance":"i"}`:                    func(r *rollout.Rollout) { require.Equal(t, "i", r.Instance) },
		`{"messages":[` + q + `,` + a + `],"notes":[{"code":"c","text":"t"}]}`: func(r *rollout.Rollout) { require.Contains(t, codes(r), "c") },
	} {
		r := one(t, "x.jsonl", text)
		require.Equal(t, "native", r.Origin.Format, text)
		check(r)
		for direct, err := range jsonl.Read(strings.NewReader(text), jsonl.Options{}) {
			require.NoError(t, err)
			check(direct)
		}
	}
	for _, text := range []string{
		`{"messages":[` + q + `,` + a + `]}`,
		`{"messages":[` + q + `,` + a + `],"status":"completed","model":"m"}`,
		`{"messages":[` + q + `,` + a + `],"outcome":"good","status":"ok","resolved":true}`,
	} {
		require.Equal(t, "openai-chat", one(t, "x.jsonl", text).Origin.Format, text)
	}
	// A chat with a key that affects the prompt is read with that key.
	const kwargs = `"template_kwargs":{"enable_thinking":false}`
	for _, text := range []string{
		`{"messages":[` + q + `,` + a + `],` + kwargs + `,"model":"m"}`,
		`{"messages":[` + q + `,` + a + `],` + kwargs + `,"reward":1}`,
		`{"messages":[` + q + `,{"role":"assistant","content":"a","weight":0},` + a + `],` + kwargs + `}`,
		`{"messages":[` + q + `,` + a + `],` + kwargs + `,"chat_template_kwargs":{"enable_thinking":false,"x":1}}`,
		`{"request":{"messages":[` + q + `],` + kwargs + `},"response":{"choices":[{"message":` + a + `}]}}`,
		`{"conversations":[{"from":"human","value":"q"},{"from":"gpt","value":"a"}],` + kwargs + `}`,
	} {
		require.Equal(t, "false", string(one(t, "x.jsonl", text).TemplateKwargs["enable_thinking"]), text)
	}
	require.Equal(t, `"sglang"`, string(one(t, "x.jsonl", `{"messages":[`+q+`,`+a+`],"metadata":{"engine":"sglang"}}`).Metadata["engine"]))
	for text, want := range map[string]string{
		`{"messages":[` + q + `,` + a + `],` + kwargs + `,"chat_template_kwargs":{"enable_thinking":true}}`:                     "says template_kwargs: enable_thinking",
		`{"messages":[` + q + `,` + a + `],"template_kwargs":[1]}`:                                                              "/template_kwargs: found a list, expected an object",
		`{"request":{"messages":[` + q + `]},"response":{"choices":[{"message":` + a + `}]},` + kwargs + `}`:                    "says template_kwargs: enable_thinking",
		`{"request":{"messages":[` + q + `]},"response":{"choices":[{"message":` + a + `}]},"tools":[{"function":{}}]}`:         "says tools: ",
		`{"messages":[` + q + `,` + a + `],"status":"aborted","model":"m"}`:                                                     "says status: aborted",
		`{"messages":[` + q + `,` + a + `],"status":"Aborted","model":"m"}`:                                                     "says status: aborted",
		`{"conversations":[{"from":"human","value":"q"},{"from":"gpt","value":"a"}],"failure":{"reason":"sandbox"}}`:            "says failure: sandbox",
		`{"request":{"messages":[` + q + `]},"response":{"choices":[{"message":` + a + `}]},"status":"failed"}`:                 "says status: failed",
		`{"request":{"messages":[` + q + `]},"response":{"choices":[{"message":` + a + `}]},"outcome":{"resolved":false}}`:      "says outcome:",
		`{"request":{"messages":[` + q + `]},"response":{"choices":[{"message":` + shown + `}]}}`:                               "says sampled: demonstration",
		`{"schema_version":"ATIF-v1.5","agent":{},"steps":[{"step_id":1,"source":"agent","message":"a"}],"status":"truncated"}`: "says status: truncated",
		`{"messages":[` + q + `,{"role":"assistant","content":"a","sampled":"scriptd"}]}`:                                       "says sampled: scriptd",
		`{"messages":[` + q + `,{"role":"assistant","content":"a","sampled":false}]}`:                                           "says sampled: false",
		`{"messages":[` + q + `,` + a + `],"outcome":{"resolved":false,"tests":3}}`:                                             "says outcome: ",
		`{"messages":[` + q + `,` + a + `],"failure":{"detail":"disk"}}`:                                                        "says failure: disk",
		`{"messages":[` + q + `,` + a + `],"failure":"disk"}`:                                                                   "says failure: disk",
	} {
		_, _, err := read(t, "x.jsonl", text, stop)
		require.ErrorContains(t, err, want, text)
	}
	// Other keys are named in a note, also of joined calls and of records in a record.
	const reply = `"response":{"choices":[{"message":` + a + `}]}`
	for text, want := range map[string]string{
		`{"messages":[` + q + `,` + a + `],"status":"completed","model":"m"}`:                                                                                   "has status as",
		`{"messages":[` + q + `,` + a + `],"notes":[{"code":"c","text":"t"}],"origin":{"format":"f"},"model":"m"}`:                                              "has notes, origin as",
		`{"messages":[` + q + `,` + a + `],"group":"g","index":3,"instance":"i","model":"m"}`:                                                                   "has group, index, instance as",
		`{"messages":[` + q + `,` + a + `],"turns":[{"output_ids":7,"message":"x"}],"steps":[{"step":1}],"reward":1}`:                                           "has turns, steps as",
		`{"request":{"messages":[` + q + `]},` + reply + `,"group":"g","temperature":1,"exit_status":"x"}`:                                                      "has group, exit_status, temperature as",
		`{"simulations":[{"id":"s","task_id":"0","messages":[` + q + `,` + a + `],"termination_reason":"user_stop","index":4}],"info":{"environment_info":{}}}`: "has index as",
		`{"id":"s","epoch":1,"input":"q","target":"","messages":[` + q + `,` + a + `],"outcome":{"verdict":"resolved","reward":1},"scores":{"x":{"value":0}}}`:  "has outcome as",
	} {
		for _, joined := range []bool{false, true} {
			out, _, err := read(t, "x.jsonl", text, traj.Options{OnError: rollout.OnErrorStop, JoinCalls: joined})
			require.NoError(t, err, text)
			require.Contains(t, fmt.Sprint(out[0].Notes), want, text)
		}
	}
	r := one(t, "x.jsonl", `{"messages":[`+q+`,`+a+`],"instance_id":"i","exit_status":"stop","temperature":1,"index":null}`)
	require.NotContains(t, codes(r), "native_key_unread")
	_, _, err := read(t, "x.jsonl", `{"request":{"messages":[`+q+`]},`+reply+`,"status":"failed"}`, traj.Options{OnError: rollout.OnErrorStop, JoinCalls: true})
	require.ErrorContains(t, err, "says status: failed")
}
