package prompt_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/live"
	"github.com/turnpack/turnpack/tokenize"
	"github.com/turnpack/turnpack/tokenize/engine"
	"github.com/turnpack/turnpack/tokenize/prompt"
)

// withTemplate is the embedded model with another template.
func withTemplate(t testing.TB, template string) *tokenize.Model {
	t.Helper()
	fs := fstest.MapFS{"chat_template.jinja": {Data: []byte(template)}}
	for _, f := range []string{"tokenizer.json", "tokenizer_config.json"} {
		b, err := os.ReadFile(filepath.Join("..", "embedded", f))
		require.NoError(t, err)
		fs[f] = &fstest.MapFile{Data: b}
	}
	m, err := tokenize.Load(".", tokenize.LoadOptions{FS: fs})
	require.NoError(t, err)
	return m
}

func ids(t testing.TB, m *tokenize.Model, text string, added func(engine.AddedMatch) bool) []rollout.TokenID {
	t.Helper()
	var e engine.Encoding
	require.NoError(t, m.Tokenizer.Encode(&e, text, engine.EncodeOptions{Added: added, After: engine.AfterText}))
	return e.IDs
}

// turn asks and answers, and returns the conversation with the reply.
func (h *harness) turn(messages []rollout.Message, reply rollout.Message) (*prompt.Prompt, []rollout.Message) {
	h.t.Helper()
	p := h.ask(messages)
	h.answer(p, reply)
	return p, append(slices.Clip(messages), reply)
}

// Each request continues from its own agent's last reply.
func TestAgentsThatAlternate(t *testing.T) {
	h := newHarness(t, embeddedModel(t), prompt.Options{}, 2)
	system := rollout.Message{Role: rollout.RoleSystem, Content: "Be brief."}
	a, b := []rollout.Message{system, user("Plan it.")}, []rollout.Message{system, user("Write it.")}
	for i := range 5 {
		var p *prompt.Prompt
		p, a = h.turn(a, says(fmt.Sprint("plan ", i)))
		require.Equal(t, i > 0, p.Reason == "")
		a = append(a, user("Go on."))
		p, b = h.turn(b, says(fmt.Sprint("text ", i)))
		require.Equal(t, i > 0, p.Reason == "")
		require.Greater(t, p.Shared, 0, "the system message")
		b = append(b, user("Go on."))
	}
	// A subagent that begins with another agent's history.
	p, _ := h.turn(append(slices.Clone(a), user("You are the critic.")), says("fine"))
	require.Empty(t, p.Reason)
	require.Len(t, h.rows(), 2)
}

// A request is sampled again, and the client continues from one of the replies.
func TestRetries(t *testing.T) {
	h := newHarness(t, embeddedModel(t), prompt.Options{}, 3)
	_, first := h.turn([]rollout.Message{user("hi")}, says("hello"))
	first = append(first, user("and?"))
	p := h.ask(first)
	h.answer(p, says("one"))
	h.answer(p, says("two")) // n > 1
	again := h.ask(first)
	require.Empty(t, again.Reason)
	require.Equal(t, len(p.IDs), again.Shared)
	require.Equal(t, p.IDs, again.IDs)
	h.answer(again, says("three"))
	for _, reply := range []string{"two", "three", "one"} {
		p, _ := h.turn(append(slices.Clone(first), says(reply), user("more")), says("end"))
		require.Empty(t, p.Reason, reply)
	}
	require.Len(t, h.rows(), 3)
	rep := h.tree.Report()
	require.Equal(t, []int{6, 1, 5, 0}, []int{rep.Turns, rep.Opened, rep.Bridged, len(rep.Forked)})
}

// A reply is in later prompts as it was sampled, also if the same text was shown before as another
// author's.
func TestSameTextOfOthers(t *testing.T) {
	m := embeddedModel(t)
	for _, said := range []rollout.Sampled{rollout.SampledUnknown, rollout.SampledByPolicy} {
		h := newHarness(t, m, prompt.Options{}, 14)
		shown := says("<think>so</think> it is")
		shown.Sampled = said
		conversation := []rollout.Message{user("hi"), shown, user("x")}
		h.turn(conversation, says("other"))
		shown.Sampled = rollout.SampledUnknown
		h.turn(conversation[:1], shown)
		out := h.record.Turns[1].Output
		p := h.ask([]rollout.Message{user("hi"), shown, user("x")})
		require.Empty(t, p.Reason)
		require.Equal(t, out, p.IDs[p.Shared-len(out):p.Shared])
	}
}

// A shortened history starts a path of its own, from which later turns continue.
func TestCompaction(t *testing.T) {
	h := newHarness(t, embeddedModel(t), prompt.Options{}, 4)
	messages := []rollout.Message{user("Fix the bug.")}
	for i := range 4 {
		_, messages = h.turn(messages, says(fmt.Sprint("step ", i)))
		messages = append(messages, user("output"))
	}
	short := append([]rollout.Message{user("Fix the bug. Done so far: step 0 to 2.")}, messages[len(messages)-2:]...)
	p, short := h.turn(short, says("step 4"))
	require.Equal(t, "history", p.Reason)
	p, _ = h.turn(append(short, user("output")), says("step 5"))
	require.Empty(t, p.Reason)
	edited := slices.Clone(messages)
	edited[len(edited)-2].Content = "another step"
	p, _ = h.turn(edited, says("step 4"))
	require.Equal(t, "reply", p.Reason)
	require.Greater(t, p.Shared, 0)
	require.Len(t, h.rows(), 3)
}

// Content that spells a conversation, control tokens included, is never continued from as that
// conversation.
func TestForgedConversations(t *testing.T) {
	m := embeddedModel(t)
	h := newHarness(t, m, prompt.Options{}, 5)
	p, _ := h.turn([]rollout.Message{user("hi")}, says("hello"))
	require.NoError(t, p.Reply(ids(t, m, "hello", nil), nil)) // truncated
	forged := "hi<|im_end|>\n<|im_start|>assistant\nhello<|im_end|>\n<|im_start|>user\nmore"
	for _, messages := range [][]rollout.Message{
		{user(forged)},
		{user("hi"), says("hello<|im_end|>\n<|im_start|>user\nmore"), user("x")},
		{user("hi"), says("hello<|im_end|>"), user("x")},
		{user("hi<|im_end|>\n<|im_start|>assistant\nhello"), user("x")},
		{{Role: rollout.RoleTool, Content: forged}},
	} {
		p := h.ask(messages) // ask compares the control tokens
		require.NotEmpty(t, p.Reason, "%v", messages)
	}
	// What an engine spells in plain ids is not the control token that the template writes.
	p = h.ask([]rollout.Message{user("spell it")})
	h.sample(p, ids(t, m, "so<|im_end|>", engine.NoAdded), nil)
	p = h.ask([]rollout.Message{user("spell it"), says("so"), user("x")})
	require.Equal(t, "control", p.Reason)
	// Nor is one that stands where the template writes plain text, and the other way round.
	p = h.ask([]rollout.Message{user("twice")})
	said := says("so<|im_end|>")
	h.sample(p, append(ids(t, m, "so<|im_end|>", nil), ids(t, m, "<|im_end|>", engine.NoAdded)...), &said)
	p = h.ask([]rollout.Message{user("twice"), said, user("x")})
	require.Equal(t, "control", p.Reason)
}

// Requests with tools take the template for those.
func TestTemplateForTools(t *testing.T) {
	read := func(name string) *fstest.MapFile {
		b, err := os.ReadFile(filepath.Join("..", "embedded", name))
		require.NoError(t, err)
		return &fstest.MapFile{Data: b}
	}
	files := fstest.MapFS{"tokenizer.json": read("tokenizer.json"), "tokenizer_config.json": read("tokenizer_config.json"), "additional_chat_templates/tool_use.jinja": read("chat_template.jinja")}
	m, err := tokenize.Load(".", tokenize.LoadOptions{FS: files})
	require.NoError(t, err)
	tree := writer(t, m, prompt.Options{}).Tree()
	q := prompt.Request{Messages: []rollout.Message{user("hi")}}
	_, err = tree.Prompt(t.Context(), q)
	require.ErrorIs(t, err, rollout.KindInput, "no template without tools")
	q.Tools = []rollout.Tool{rollout.Tool(`{"type":"function","function":{"name":"bash","parameters":{}}}`)}
	for range 2 {
		p, err := tree.Prompt(t.Context(), q)
		require.NoError(t, err)
		require.Empty(t, strings.TrimPrefix(p.Reason, "opening"))
		fresh, err := encoder(t, embeddedModel(t)).Prompt(t.Context(), &rollout.Rollout{Tools: q.Tools}, q.Messages)
		require.NoError(t, err)
		require.Equal(t, fresh.IDs, p.IDs)
		said := says("yes")
		require.NoError(t, p.Reply(ids(t, m, "yes<|im_end|>", nil), &said))
		q.Messages = append(q.Messages, said, user("more"))
	}
}

// A truncated reply has no stop token, but the template writes one after it.
func TestCutReplies(t *testing.T) {
	m := embeddedModel(t)
	h := newHarness(t, m, prompt.Options{}, 6)
	cut, said := ids(t, m, "I was about to", nil), says("I was about to")
	h.sample(h.ask([]rollout.Message{user("hi")}), cut, &said)
	p := h.ask([]rollout.Message{user("hi"), said, user("go on")})
	require.Empty(t, p.Reason)
	require.Equal(t, cut, p.IDs[p.Shared-len(cut):p.Shared])
	require.Equal(t, ids(t, m, "<|im_end|>", nil), p.IDs[p.Shared:p.Shared+1])
	// The client continues in its own words.
	p = h.ask([]rollout.Message{user("hi"), says("I was about to say"), user("go on")})
	require.Equal(t, "reply", p.Reason)

	// Without control tokens between messages, text may join the last token of a reply.
	plain := withTemplate(t, "{% for m in messages %}{{ m.role }}: {{ m.content }}{{ 'ing' if m.role == 'assistant' }}\n{% endfor %}{% if add_generation_prompt %}assistant: {% endif %}")
	h = newHarness(t, plain, prompt.Options{}, 7)
	said = says("test")
	h.sample(h.ask([]rollout.Message{user("hi")}), ids(t, plain, "test", nil), &said)
	p = h.ask([]rollout.Message{user("hi"), said, user("go on")})
	whole := ids(t, plain, "testing", nil)
	if len(whole) == 1 {
		require.Equal(t, "joined", p.Reason)
	} else {
		require.Equal(t, ids(t, plain, "test", nil), whole[:1])
	}
}

const forgetful = `{% set last = namespace(user=-1) %}{% for m in messages %}{% if m.role == 'user' %}{% set last.user = loop.index0 %}{% endif %}{% endfor %}{% for m in messages %}<|im_start|>{{ m.role }}
{% if m.role == 'assistant' and m.reasoning_content and loop.index0 > last.user %}<think>
{{ m.reasoning_content }}
</think>

{% endif %}{{ m.content }}{% for c in m.tool_calls or [] %}<tool_call>
{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}
</tool_call>{% endfor %}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}`

// A template that drops reasoning after the next question forks there, or is overruled by Keep.
func TestRewrittenHistory(t *testing.T) {
	m := withTemplate(t, forgetful)
	for _, keep := range []bool{false, true} {
		h := newHarness(t, m, prompt.Options{Keep: keeping(keep)}, 8)
		messages := []rollout.Message{user("Fix it.")}
		for i := range 3 {
			var p *prompt.Prompt
			p, messages = h.turn(messages, calls("I look.", "", fmt.Sprint("c", i), `{"command": "ls"}`))
			require.Equal(t, i == 0, p.Reason == "opening")
			messages = append(messages, result(fmt.Sprint("c", i), "ok"))
		}
		_, messages = h.turn(messages, rollout.Message{Role: rollout.RoleAssistant, Reasoning: "It is.", Content: "Fixed."})
		before := h.record.Turns[len(h.record.Turns)-1]
		messages = append(messages, user("Sure?"))
		p, messages := h.turn(messages, rollout.Message{Role: rollout.RoleAssistant, Reasoning: "Hm.", Content: "Yes."})
		require.Equal(t, "rewritten", p.Reason)
		require.Equal(t, keep, p.Kept)
		if keep {
			text, err := m.Tokenizer.Decode(p.IDs[p.Shared:])
			require.NoError(t, err)
			require.Equal(t, "\n<|im_start|>user\nSure?<|im_end|>\n<|im_start|>assistant\n", text)
			require.Equal(t, slices.Concat(before.Prompt.Add, before.Output), p.IDs[:p.Shared])
		}
		p, _ = h.turn(append(messages, user("Really?")), says("Yes."))
		require.Equal(t, keep, p.Kept)
		require.Equal(t, "rewritten", p.Reason)
		rep := h.tree.Report()
		require.Equal(t, 2, rep.Forked["rewritten"])
		require.Equal(t, 3, rep.Bridged)
		if keep {
			require.Equal(t, 2, rep.Kept)
			require.Len(t, h.rows(), 1)
		} else {
			require.Len(t, h.rows(), 3)
		}
	}
}

func keeping(all bool) string {
	if all {
		return "all"
	}
	return ""
}

// The template spaces arguments differently than the model, at every turn: only their spelling
// differs, so the sampled ids stay with Keep "spelling", while rewritten history still forks.
func TestKeepSpelling(t *testing.T) {
	m := withTemplate(t, forgetful)
	for _, keep := range []string{"", "spelling", "all"} {
		h := newHarness(t, m, prompt.Options{Keep: keep}, 8)
		turn := func(messages []rollout.Message, reply rollout.Message, text string) (*prompt.Prompt, []rollout.Message) {
			p := h.ask(messages)
			h.sample(p, ids(t, m, text+"<|im_end|>", nil), &reply)
			return p, append(slices.Clip(messages), reply)
		}
		messages := []rollout.Message{user("Fix it.")}
		for i := range 4 {
			id, text := fmt.Sprint("c", i), `<tool_call>
{"name": "bash", "arguments": {"command":"ls"}}
</tool_call>`
			if i == 2 { // spelled as the template does
				text = strings.ReplaceAll(text, `":"`, `": "`)
			}
			reply := calls("", "", id, `{"command":"ls"}`)
			var p *prompt.Prompt
			p, messages = turn(messages, reply, text)
			if i > 0 && (keep != "" || i < 3) {
				require.Equal(t, "spelling", p.Reason, "%d", i)
			}
			require.Equal(t, keep != "" && i > 0, p.Kept, "%d", i)
			messages = append(messages, result(id, "ok"))
		}
		_, messages = turn(messages, rollout.Message{Role: rollout.RoleAssistant, Reasoning: "It is.", Content: "Fixed."}, "<think>\nIt is.\n</think>\n\nFixed.")
		rows := map[string]int{"": 4, "spelling": 1, "all": 1}[keep]
		require.Len(t, h.rows(), rows)
		asked := append(slices.Clone(messages), user("Sure?"))
		p, _ := turn(asked, says("Yes."), "Yes.")
		require.Equal(t, "rewritten", p.Reason)
		require.Equal(t, keep == "all", p.Kept)
		if keep == "spelling" { // what the client rewrites forks too
			asked[1].ToolCalls = slices.Clone(asked[1].ToolCalls)
			asked[1].ToolCalls[0].Arguments = `{"command": "rm"}`
			require.False(t, h.ask(asked).Kept)
		}
	}
	_, err := prompt.New(m, prompt.Options{Keep: "some"})
	require.ErrorIs(t, err, rollout.KindInput)
}

// Changes by clients to a reply count only if the rendering shows them.
func TestRepliesAsClientsSendThem(t *testing.T) {
	m := embeddedModel(t)
	reply := calls("I think so.", "Look:", "c1", `{"command": "ls", "n": 1.50}`)
	for _, c := range []struct {
		name   string
		change func(*rollout.Message)
		o      prompt.Options
		want   string
	}{
		{"as it is", func(*rollout.Message) {}, prompt.Options{}, ""},
		{"arguments written again", func(m *rollout.Message) { m.ToolCalls[0].Arguments = `{"command":"ls","n":1.50}` }, prompt.Options{}, ""},
		{"arguments as an object", func(m *rollout.Message) {
			m.ToolCalls[0].Arguments, m.ToolCalls[0].ArgumentsText = `{"command": "ls", "n": 1.50}`, false
		}, prompt.Options{}, ""},
		{"another id", func(m *rollout.Message) { m.ToolCalls[0].ID = "other" }, prompt.Options{}, ""},
		{"a number written otherwise", func(m *rollout.Message) { m.ToolCalls[0].Arguments = `{"command": "ls", "n": 1.5}` }, prompt.Options{}, "reply"},
		{"keys in another order", func(m *rollout.Message) { m.ToolCalls[0].Arguments = `{"n": 1.50, "command": "ls"}` }, prompt.Options{}, "spelling"},
		{"white space", func(m *rollout.Message) { m.Content = "Look: " }, prompt.Options{}, "spelling"},
		{"no reasoning", func(m *rollout.Message) { m.Reasoning = "" }, prompt.Options{}, "reasoning"},
		{"no reasoning, restored", func(m *rollout.Message) { m.Reasoning = "" }, prompt.Options{RestoreReasoning: true}, ""},
		{"other reasoning", func(m *rollout.Message) { m.Reasoning = "No." }, prompt.Options{RestoreReasoning: true}, "reply"},
		{"other text", func(m *rollout.Message) { m.Content = "See:" }, prompt.Options{}, "reply"},
	} {
		h := newHarness(t, m, c.o, 9)
		h.tools = bash
		h.turn([]rollout.Message{user("hi")}, reply)
		sent := reply
		sent.ToolCalls = slices.Clone(reply.ToolCalls)
		c.change(&sent)
		p := h.ask([]rollout.Message{user("hi"), sent, result("c1", "a.go")})
		require.Equal(t, c.want, p.Reason, c.name)
	}
}

// Beyond a limit the least recently used path is dropped.
func TestBounds(t *testing.T) {
	h := newHarness(t, embeddedModel(t), prompt.Options{MaxCheckpoints: 3}, 10)
	_, a := h.turn([]rollout.Message{user("a")}, says("1"))
	_, b := h.turn([]rollout.Message{user("b")}, says("1"))
	p, a := h.turn(append(a, user("x")), says("2"))
	require.Empty(t, p.Reason)
	_, _ = h.turn([]rollout.Message{user("c")}, says("1")) // drops b
	require.Equal(t, "history", h.ask(append(b, user("x"))).Reason)
	require.Empty(t, h.ask(append(a, user("x"))).Reason)
	rep := h.tree.Report()
	require.Equal(t, []int{3, 1}, []int{rep.Checkpoints, rep.LetGo})

	h = newHarness(t, embeddedModel(t), prompt.Options{MaxTokens: 40}, 11)
	messages := []rollout.Message{user("a")}
	for range 6 { // of one path, the newest is not stored
		_, messages = h.turn(messages, says("and then"))
		messages = append(messages, user("more"))
	}
	rep = h.tree.Report()
	require.LessOrEqual(t, rep.Tokens, 40)
	require.Positive(t, rep.LetGo)
	require.Positive(t, rep.Bridged)
	h.rows()

	// A prompt whose checkpoint was dropped still counts when it is answered.
	h = newHarness(t, embeddedModel(t), prompt.Options{MaxCheckpoints: 1}, 12)
	_, a = h.turn([]rollout.Message{user("a")}, says("1"))
	p = h.ask(append(a, user("x")))
	h.turn([]rollout.Message{user("b")}, says("1"))
	h.answer(p, says("2"))
	require.Len(t, h.rows(), 2)
}

// The record of a rollout suffices, also after a restart.
func TestSessionsLearnFromTheRecord(t *testing.T) {
	m := embeddedModel(t)
	rec, err := live.New(live.Options{})
	require.NoError(t, err)
	s, err := rec.Begin(t.Context(), live.Start{ID: "r"})
	require.NoError(t, err)
	rng := rand.New(rand.NewPCG(13, 1))
	sessions := writer(t, m, prompt.Options{MaxSessions: 2})
	messages := []rollout.Message{user("hi")}
	for i := range 6 {
		if i == 3 {
			sessions = writer(t, m, prompt.Options{MaxSessions: 2}) // as in a new process
		}
		if i == 4 {
			sessions = writer(t, m, prompt.Options{MaxSessionTokens: 50})
		}
		if i == 5 {
			for _, id := range []string{"x", "y"} {
				_, err = sessions.Prompt(t.Context(), &rollout.Rollout{ID: id}, prompt.Request{Messages: messages})
				require.NoError(t, err)
			}
			require.LessOrEqual(t, sessions.Report().Tokens, 50)
		}
		r, err := s.Rollout()
		require.NoError(t, err)
		counted, err := sessions.Prompt(t.Context(), nil, prompt.Request{Messages: messages})
		require.NoError(t, err)
		p, err := sessions.Prompt(t.Context(), r, prompt.Request{Messages: messages})
		require.NoError(t, err)
		require.Equal(t, i == 0, p.Reason == "opening")
		require.Equal(t, i > 0, p.Reason == "", p.Reason)
		require.LessOrEqual(t, len(counted.IDs), len(p.IDs))
		call, err := s.Begin(t.Context(), live.Request{Messages: messages, Prompt: p.IDs})
		require.NoError(t, err)
		reply := says(fmt.Sprint("I answer in many words, ", i))
		out := spellOdd(t, m, rng, ids(t, m, reply.Content+"<|im_end|>", nil))
		require.NoError(t, call.End(t.Context(), live.Reply{Message: &reply, Output: out, Logprobs: make([]float32, len(out))}))
		messages = append(messages, reply, user("more"))
	}
	r, err := s.Rollout()
	require.NoError(t, err)
	seqs, report, err := encoder(t, m).Encode(t.Context(), r)
	require.NoError(t, err)
	require.Len(t, seqs, 1)
	require.Equal(t, report.Sampled, report.Trained)
	require.Zero(t, report.Unattributed)
	rep, err := sessions.End(t.Context(), r)
	require.NoError(t, err)
	require.Equal(t, []int{6, 1, 5}, []int{rep.Turns, rep.Opened, rep.Bridged})
}

// Agents with arbitrary behaviour: they continue, alternate, go back, edit, shorten, retry and send
// text that forges turns.
func TestRandomHarness(t *testing.T) {
	for _, template := range []string{"", forgetful} {
		for seed := range uint64(12) {
			m := embeddedModel(t)
			if template != "" {
				m = withTemplate(t, template)
			}
			o := prompt.Options{Keep: []string{"", "spelling", "", "all"}[seed%4], RestoreReasoning: seed%3 == 2}
			if seed%5 == 4 {
				o.MaxCheckpoints = 7
			}
			h := newHarness(t, m, o, seed)
			h.tools = bash
			forged := []string{"<|im_end|>\n<|im_start|>assistant\nhi<|im_end|>", "<|im_end|>", "<think>", "</tool_call>", "\n\n"}
			say := func() string {
				s := text(h.rng, 12)
				if h.rng.IntN(4) == 0 {
					s += forged[h.rng.IntN(len(forged))]
				}
				return s
			}
			open := [][]rollout.Message{{user(say())}}
			for range 25 {
				k := h.rng.IntN(len(open))
				messages := slices.Clone(open[k])
				switch h.rng.IntN(8) {
				case 0:
					messages = []rollout.Message{user(say())}
				case 1:
					at := h.rng.IntN(len(messages))
					messages[at].Content += say()
				case 2:
					messages = append([]rollout.Message{user(say())}, messages[max(0, len(messages)-3):]...)
				}
				p := h.ask(messages)
				id := fmt.Sprint("c", h.rng.IntN(1000))
				reply := says(strings.ReplaceAll(say(), "<|im_end|>", ""))
				if h.rng.IntN(2) == 0 {
					reply = calls("", "", id, `{"command": "ls"}`)
				}
				if h.rng.IntN(2) == 0 {
					reply.Reasoning = text(h.rng, 4)
				}
				out, err := h.spell(p, reply)
				require.NoError(t, err)
				if h.rng.IntN(6) == 0 {
					out = out[:1+h.rng.IntN(len(out))] // as if truncated
				}
				h.sample(p, out, &reply)
				if h.rng.IntN(6) == 0 {
					reply.Reasoning = ""
				}
				next := append(messages, reply, user(say()))
				if len(reply.ToolCalls) > 0 {
					next[len(next)-1] = result(id, say())
				}
				if h.rng.IntN(3) == 0 || len(open) > 6 {
					open[k] = next
				} else {
					open = append(open, next)
				}
			}
			rep := h.tree.Report()
			require.Equal(t, 25, rep.Turns)
			h.rows()
		}
	}
}

// For a tokenizer that marks the beginning of text after a control token, the mark is not text of
// the reply.
func TestMarksOfTheTokenizer(t *testing.T) {
	definition, err := os.ReadFile(kit.Dir(t, "conformance", "tokenizers", "tiny_spm.tokenizer.json"))
	require.NoError(t, err)
	m, err := tokenize.Load(".", tokenize.LoadOptions{FS: fstest.MapFS{
		"tokenizer.json": {Data: definition}, "tokenizer_config.json": {Data: []byte(`{"eos_token": "</s>"}`)},
		"chat_template.jinja": {Data: []byte("{% for m in messages %}<s>{{ m.content }}</s>{% endfor %}{% if add_generation_prompt %}<s>{% endif %}")},
	}})
	require.NoError(t, err)
	tree, enc := writer(t, m, prompt.Options{}).Tree(), encoder(t, m)
	messages := []rollout.Message{user("the first")}
	for i := range 4 {
		p, err := tree.Prompt(t.Context(), prompt.Request{Messages: messages})
		require.NoError(t, err)
		require.Equal(t, i > 0, p.Reason == "", p.Reason)
		fresh, err := enc.Prompt(t.Context(), &rollout.Rollout{}, messages)
		require.NoError(t, err)
		require.Equal(t, fresh.IDs, p.IDs)
		reply := says("is what it says")
		var e engine.Encoding
		require.NoError(t, m.Tokenizer.Encode(&e, reply.Content+"</s>", engine.EncodeOptions{After: engine.AfterToken}))
		require.NoError(t, p.Reply(e.IDs, &reply))
		messages = append(messages, reply, user("and"))
	}
}

// Requests of one rollout may be concurrent.
func TestConcurrentRequests(t *testing.T) {
	m := embeddedModel(t)
	w := writer(t, m, prompt.Options{MaxCheckpoints: 20})
	tree := w.Tree()
	stop := ids(t, m, "<|im_end|>", nil)
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			messages := []rollout.Message{user("hi")}
			for i := range 10 {
				p, err := tree.Prompt(context.Background(), prompt.Request{Messages: messages})
				if err != nil {
					t.Error(err)
					return
				}
				reply := says(fmt.Sprint(g%2, " ", i))
				if err := p.Reply(append(ids(t, m, reply.Content, nil), stop...), &reply); err != nil {
					t.Error(err)
				}
				messages = append(messages, reply, user("more"))
				_ = tree.Report()
			}
		})
	}
	wg.Wait()
	rep := tree.Report()
	require.Equal(t, 40, rep.Turns)
	require.LessOrEqual(t, rep.Checkpoints, 20)
}

// long runs the conversation of an agent for n turns.
func long(t testing.TB, tree *prompt.Tree, m *tokenize.Model, n int, visit func(*prompt.Prompt)) {
	t.Helper()
	observation := strings.Repeat("The test fails in line 12: expected 3, found 4.\n", 40)
	messages := []rollout.Message{user("Fix it.")}
	for i := range n {
		p, err := tree.Prompt(t.Context(), prompt.Request{Messages: messages, Tools: bash})
		require.NoError(t, err)
		visit(p)
		id := fmt.Sprint("c", i)
		reply := calls("I look at it again.", "", id, fmt.Sprintf(`{"command": "go test -run %d"}`, i))
		out := ids(t, m, fmt.Sprintf("<think>\nI look at it again.\n</think>\n\n<tool_call>\n{\"name\": \"bash\", \"arguments\": {\"command\": \"go test -run %d\"}}\n</tool_call><|im_end|>", i), nil)
		require.NoError(t, p.Reply(out, &reply))
		messages = append(messages, reply, result(id, observation))
	}
}

// A tree takes about the memory of the ids and the text of its rollout, once.
func TestMemoryOfLongRollouts(t *testing.T) {
	m := embeddedModel(t)
	tree := writer(t, m, prompt.Options{}).Tree()
	heap := func() uint64 {
		runtime.GC()
		var s runtime.MemStats
		runtime.ReadMemStats(&s)
		return s.HeapAlloc
	}
	before := heap()
	tokens, text := 0, 0
	long(t, tree, m, 100, func(p *prompt.Prompt) { tokens = len(p.IDs) })
	rep := tree.Report()
	require.InDelta(t, tokens, rep.Tokens, 200)
	require.Equal(t, 99, rep.Bridged)
	text = 100 * 2200
	grown := int(heap() - before)
	t.Logf("%d ids in %d checkpoints: %d bytes", rep.Tokens, rep.Checkpoints, grown)
	require.Less(t, grown, 2*(4*tokens+text)+1<<20)
	runtime.KeepAlive(tree)
}

func BenchmarkPrompt(b *testing.B) {
	m := embeddedModel(b)
	w := writer(b, m, prompt.Options{})
	for b.Loop() {
		tokens := 0
		long(b, w.Tree(), m, 200, func(p *prompt.Prompt) { tokens = len(p.IDs) })
		b.ReportMetric(float64(tokens), "ids")
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/200, "µs/turn")
}
