package lossmask_test

import (
	"math"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/lossmask"
	"github.com/turnpack/turnpack/rollout"
)

// Names of the tokens used here, so that tests can be read as text.
const (
	open, user, nl, question, assistant, think, answer, call, stop rollout.TokenID = 1, 2, 3, 4, 5, 6, 7, 8, 9
)

const sampled = rollout.FlagSampled

type token struct {
	ID           rollout.TokenID
	Source, Turn int32
	Flags        rollout.Flag
}

func sequence(t testing.TB, tokens ...token) rollout.Sequence {
	t.Helper()
	var c rollout.Columns
	for _, k := range tokens {
		c.IDs, c.Source, c.Turn, c.Flags = append(c.IDs, k.ID), append(c.Source, k.Source), append(c.Turn, k.Turn), append(c.Flags, k.Flags)
	}
	seq, err := c.Sequence(rollout.Identity{Rollout: "r"}, 0)
	require.NoError(t, err)
	return seq
}

// conversation is two turns of ChatML shape: prompt, completion, separator.
func conversation(t testing.TB) rollout.Sequence {
	special := rollout.FlagSpecial
	return sequence(t,
		token{ID: open, Source: -1, Turn: -1, Flags: special},
		token{ID: user, Source: -1, Turn: -1},
		token{ID: question, Source: 0, Turn: -1, Flags: rollout.FlagContent},
		token{ID: stop, Source: -1, Turn: -1, Flags: special},
		token{ID: nl, Source: -1, Turn: -1},
		token{ID: open, Source: -1, Turn: -1, Flags: special},
		token{ID: assistant, Source: -1, Turn: -1},
		token{ID: think, Source: 1, Turn: 0, Flags: sampled | rollout.FlagReasoning},
		token{ID: answer, Source: 1, Turn: 0, Flags: sampled | rollout.FlagContent},
		token{ID: stop, Source: 1, Turn: 0, Flags: sampled | special | rollout.FlagStop},
		token{ID: nl, Source: -1, Turn: -1},
		token{ID: open, Source: -1, Turn: -1, Flags: special},
		token{ID: assistant, Source: -1, Turn: -1},
		token{ID: call, Source: 2, Turn: 1, Flags: sampled | rollout.FlagToolCall},
		token{ID: stop, Source: 2, Turn: 1, Flags: sampled | special | rollout.FlagStop},
		token{ID: nl, Source: -1, Turn: -1},
	)
}

func spell(id rollout.TokenID) string {
	return []string{"", "<open>", "user", "\n", "question", "assistant", "think", "answer", "call", "<stop>"}[id]
}

func trained(seq rollout.Sequence) string {
	var out []string
	for i, w := range seq.Weight {
		if w > 0 {
			out = append(out, strings.ReplaceAll(spell(seq.IDs[i]), "\n", "NL"))
		}
	}
	return strings.Join(out, " ")
}

func TestPolicies(t *testing.T) {
	roles := []rollout.Message{{Role: rollout.RoleUser}, {Role: rollout.RoleAssistant}, {Role: rollout.RoleAssistant}}
	for _, c := range []struct {
		name, reason string
		policy       lossmask.Policy
		want         string
	}{
		{"Sampled", "stop tokens train, headers and separators do not", lossmask.Policy{}, "think answer <stop> call <stop>"},
		{"LastTurn", "earlier turns are context", lossmask.Policy{LastTurn: true}, "call <stop>"},
		{"Turns", "a turn filter", lossmask.Policy{Turns: func(i int) bool { return i == 0 }}, "think answer <stop>"},
		{"Messages", "a message filter", lossmask.Policy{Messages: func(i int) bool { return i == 2 }}, "call <stop>"},
		{"NoReasoning", "thinking off, its turn stays", lossmask.Policy{NoReasoning: true}, "answer <stop> call <stop>"},
		{"NoToolCalls", "calls off, the stop token stays", lossmask.Policy{NoToolCalls: true}, "think answer <stop> <stop>"},
		{"TrainSeparator", "the newline after a trained stop only", lossmask.Policy{TrainSeparator: true}, "think answer <stop> NL call <stop> NL"},
		{"Assistant", "equal to sampled when all was sampled", everyReply(roles), "think answer <stop> call <stop>"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := lossmask.Apply(conversation(t), c.policy)
			require.NoError(t, err)
			require.Equal(t, c.want, trained(got), c.reason)
			require.NoError(t, got.Check())
		})
	}
}

// A reply of ids alone, which no message names, may follow a stop token at once: it is no separator.
func TestNoSeparatorBetweenReplies(t *testing.T) {
	const stop = rollout.FlagSampled | rollout.FlagStop
	seq := rollout.Sequence{IDs: []rollout.TokenID{1, 2, 3, 2}, Source: []int32{-1, -1, -1, -1}, Flags: []rollout.Flag{0, stop, rollout.FlagSampled, stop}, Turn: []int32{-1, 0, 1, 1}}
	got, err := lossmask.Apply(seq, lossmask.Policy{TrainSeparator: true, TurnWeight: func(turn int) float32 { return 1 / float32(1+turn) }})
	require.NoError(t, err)
	require.Equal(t, []float32{0, 1, 0.5, 0.5}, got.Weight)
}

func TestAssistantTrainsUnsampledText(t *testing.T) {
	seq := sequence(t,
		token{ID: open, Source: -1, Turn: -1},
		token{ID: question, Source: 0, Turn: -1, Flags: rollout.FlagContent},
		token{ID: answer, Source: 1, Turn: -1, Flags: rollout.FlagContent},
	)
	got, err := lossmask.Apply(seq, everyReply([]rollout.Message{{Role: rollout.RoleUser}, {Role: rollout.RoleAssistant}}))
	require.NoError(t, err)
	require.Equal(t, "answer", trained(got))
	got, err = lossmask.Apply(seq, lossmask.Policy{})
	require.NoError(t, err)
	require.Zero(t, got.Trained(), "nothing was sampled")
}

func TestFirstTokenNeverTrains(t *testing.T) {
	seq := sequence(t,
		token{ID: answer, Source: 0, Turn: 0, Flags: sampled},
		token{ID: stop, Source: 0, Turn: 0, Flags: sampled | rollout.FlagStop},
	)
	got, err := lossmask.Apply(seq, lossmask.Policy{})
	require.NoError(t, err)
	require.Equal(t, []float32{0, 1}, got.Weight)
}

func TestTurnWeight(t *testing.T) {
	p := lossmask.Policy{TurnWeight: func(turn int) float32 { return float32(turn) / 2 }}
	got, err := lossmask.Apply(conversation(t), p)
	require.NoError(t, err)
	require.Equal(t, "call <stop>", trained(got), "turn 0 has weight 0")
	require.Equal(t, float32(0.5), got.Weight[13])
	p.TurnWeight = func(int) float32 { return float32(math.NaN()) }
	_, err = lossmask.Apply(conversation(t), p)
	require.ErrorIs(t, err, rollout.KindInput)
}

func TestRowReason(t *testing.T) {
	p := lossmask.Policy{MaxTokens: 10}
	require.Equal(t, "overlong", p.RowReason(11, rollout.StatusCompleted))
	require.Equal(t, "", p.RowReason(10, rollout.StatusTruncated))
	require.Equal(t, "aborted", p.RowReason(1, rollout.StatusAborted))
	require.Equal(t, "failed", p.RowReason(1, rollout.StatusFailed))
	p.MaskStatus = []rollout.Status{}
	require.Equal(t, "", p.RowReason(1, rollout.StatusAborted), "an empty list masks none")
}

func TestValidate(t *testing.T) {
	err := lossmask.Policy{MaxTokens: -1}.Validate()
	require.ErrorContains(t, err, "MaxTokens")
	require.ErrorIs(t, err, rollout.KindInput)
}

// The mask is a pure function of sequence and policy: the input keeps its own mask.
func TestApplyLeavesInputAlone(t *testing.T) {
	seq := conversation(t)
	first, err := lossmask.Apply(seq, lossmask.Policy{})
	require.NoError(t, err)
	_, err = lossmask.Apply(first, lossmask.Policy{LastTurn: true})
	require.NoError(t, err)
	require.Nil(t, seq.Weight)
	require.Equal(t, 5, first.Trained())
}

func Example() {
	seq, err := rollout.Columns{
		IDs:    []rollout.TokenID{assistant, answer, stop, nl},
		Source: []int32{-1, 1, 1, -1},
		Flags:  []rollout.Flag{0, sampled | rollout.FlagContent, sampled | rollout.FlagSpecial | rollout.FlagStop, 0},
		Turn:   []int32{-1, 0, 0, -1},
	}.Sequence(rollout.Identity{Rollout: "demo"}, 0)
	if err != nil {
		panic(err)
	}
	seq, err = lossmask.Apply(seq, lossmask.Policy{})
	if err != nil {
		panic(err)
	}
	if err := lossmask.Explain(os.Stdout, &seq, spell); err != nil {
		panic(err)
	}
	// Output:
	//   pos      id  token                  source  turn  weight  flags
	//     0       5  assistant            scaffold     -       0
	//     1       7  answer                      1     0       1  sampled,content
	//     2       9  <stop>                      1     0       1  sampled,special,stop
	//     3       3  \n                   scaffold     -       0
}

// everyReply trains every assistant message of the conversation.
func everyReply(messages []rollout.Message) lossmask.Policy {
	return lossmask.Policy{Assistant: func(i int) bool {
		return i >= 0 && i < len(messages) && messages[i].Role == rollout.RoleAssistant
	}}
}

func TestColumnsOfUnequalLengthAreRefused(t *testing.T) {
	seq := rollout.Sequence{IDs: []rollout.TokenID{1, 2}}
	_, err := lossmask.Apply(seq, lossmask.Policy{LastTurn: true})
	require.ErrorContains(t, err, "2 tokens have 0 sources")
	require.ErrorContains(t, lossmask.Explain(&strings.Builder{}, &seq, nil), "2 tokens have 0 sources")
}

func TestAStatusThatIsNoneIsRefused(t *testing.T) {
	require.ErrorContains(t, lossmask.Policy{MaskStatus: []rollout.Status{9}}.Validate(), "MaskStatus")
}
