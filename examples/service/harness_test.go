package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/internal/fakeengine"
)

// message is a chat message as sent or received, in JSON.
type message = json.RawMessage

// harness is an agent that acts like harnesses, at random: it continues, retries, calls a
// subagent, returns to an earlier point or shortens its history.
type harness struct {
	t       *testing.T
	r       *rand.Rand
	url     string
	sampled int // completion tokens that the engine counted
	// ends are the conversations that no later call continued; each needs a row.
	ends map[string]bool
}

func key(messages []message) string { return string(bytes.Join(toBytes(messages), []byte("\n"))) }

func toBytes(messages []message) (out [][]byte) {
	for _, m := range messages {
		out = append(out, m)
	}
	return out
}

// ask makes one call of a session and returns the reply.
func (h *harness) ask(id string, messages []message, header ...string) message {
	body, err := json.Marshal(map[string]any{"model": "m", "max_tokens": 5 + h.r.IntN(20), "messages": messages})
	require.NoError(h.t, err)
	var text string
	for range 1 + h.r.IntN(2) { // a retried call gets the same reply
		var status int
		status, text = ask(h.t, "POST", h.url+"/rollouts/"+id+"/v1/chat/completions", string(body), header...)
		require.Equal(h.t, 200, status, text)
	}
	var reply struct {
		Choices []struct{ Message message }
		Usage   struct {
			Completion int `json:"completion_tokens"`
		}
	}
	require.NoError(h.t, json.Unmarshal([]byte(text), &reply))
	h.sampled += reply.Usage.Completion
	delete(h.ends, key(messages[:len(messages)-1]))
	h.ends[key(append(messages[:len(messages):len(messages)], reply.Choices[0].Message))] = true
	return reply.Choices[0].Message
}

func (h *harness) play(id string, steps int, header ...string) {
	say := func(text string) message { return message(fmt.Sprintf(`{"role":"user","content":%q}`, text)) }
	history := []message{say("task " + id)}
	points := [][]message{history}
	for step := range steps {
		history = append(history[:len(history):len(history)], h.ask(id, history, header...), say(fmt.Sprint("result ", h.r.IntN(1000), " ", step)))
		points = append(points, history)
		switch h.r.IntN(8) {
		case 0:
			if len(header) == 0 {
				h.play(fmt.Sprintf("%s.%d", id, step), 1+h.r.IntN(3), "X-Parent-Session-Id", id)
			}
		case 1: // back to an earlier point with another message
			old := points[h.r.IntN(len(points))]
			history = append(old[:len(old)-1:len(old)-1], say(fmt.Sprint("again ", step)))
		case 2: // a summary replaces the history
			history = []message{say(fmt.Sprint("task ", id, " so far ", step))}
		}
	}
}

// Trained tokens are exactly the sampled ones, whatever the harness does, with prompts
// rendered by the engine and with exact prompts.
func TestTrainedIsSampled(t *testing.T) {
	for _, exact := range []bool{false, true} {
		t.Run(fmt.Sprint("exact ", exact), func(t *testing.T) {
			_, engine := fakeEngine(t, fakeengine.Options{Seed: 3})
			url, _ := start(t, t.TempDir(), engine, "--group", "1", fmt.Sprint("--exact=", exact))
			seed := uint64(1)
			if s := os.Getenv("TURNPACK_SEED"); s != "" {
				_, err := fmt.Sscan(s, &seed)
				require.NoError(t, err)
			}
			for i := range 6 {
				h := &harness{t: t, r: rand.New(rand.NewPCG(seed, uint64(i))), url: url, ends: map[string]bool{}}
				id := fmt.Sprint("r", i)
				h.play(id, 10)
				status, text := ask(t, "POST", url+"/rollouts/"+id+"/end", fmt.Sprintf(`{"group":%q,"reward":1}`, id))
				require.Equal(t, 200, status, text)
				status, text = ask(t, "GET", fmt.Sprintf("%s/batches?after=%d", url, i), "")
				require.Equal(t, 200, status)
				batch, err := export.NewReader(bytes.NewReader([]byte(text)), int64(len(text)))
				require.NoError(t, err)
				trained, rows := 0, 0
				for row, err := batch.Read(); err == nil; row, err = batch.Read() {
					trained += row.Sequence.Trained()
					rows++
				}
				require.Equal(t, h.sampled, trained)
				if exact {
					require.Len(t, h.ends, rows, "the fewest")
				}
				require.GreaterOrEqual(t, rows, len(h.ends))
			}
			if exact {
				_, text := ask(t, "GET", url+"/metrics", "")
				require.Contains(t, text, "turnpack_prompts_bridged_share ")
			}
		})
	}
}
