package lint

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/ctxwindow"
	"github.com/turnpack/turnpack/export/chats"
	"github.com/turnpack/turnpack/internal/shaped"
	"github.com/turnpack/turnpack/internal/swerl"
	"github.com/turnpack/turnpack/internal/tally"
	"github.com/turnpack/turnpack/lossmask"
	"github.com/turnpack/turnpack/prm"
	"github.com/turnpack/turnpack/reward"
	"github.com/turnpack/turnpack/reward/detect"
	"github.com/turnpack/turnpack/reward/pivot"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/jsonl"
	"github.com/turnpack/turnpack/rollout/traj"
	"github.com/turnpack/turnpack/tokenize"
	"github.com/turnpack/turnpack/tokenize/embedded"
	"github.com/turnpack/turnpack/tokenize/exact"
	"github.com/turnpack/turnpack/tokenize/prompt"
)

type mute struct{}

func (mute) Judge(context.Context, prm.Request) (prm.Reply, error) { return prm.Reply{}, nil }

// takesRollout matches functions with rollout parameters, and methods of one, in the
// golden file of TestAPI.
var takesRollout = regexp.MustCompile(`(?m)^(\S+): func (?:\((?:\w+ )?\*?(\w+)\) )?(\w+)\((?:[^()]|\([^()]*\))*?\*?(?:rollout\.)?Rollout\b`)

var ofRollout = regexp.MustCompile(`(?m)^rollout: func \(\w+ \*(Rollout)\) (\w+)\(`)

// A nil rollout gives an error or counts as empty.
func TestNilRollouts(t *testing.T) {
	ctx := context.Background()
	model, err := embedded.Model()
	require.NoError(t, err)
	enc, err := tokenize.NewEncoder(model, tokenize.Options{})
	require.NoError(t, err)
	exactly, err := exact.New(model, exact.Options{})
	require.NoError(t, err)
	prompts, err := prompt.New(model, prompt.Options{})
	require.NoError(t, err)
	scorer, err := prm.NewScorer(mute{}, prm.Options{})
	require.NoError(t, err)
	set, err := chats.NewWriter(io.Discard, "openai")
	require.NoError(t, err)
	var none *rollout.Rollout
	one := func(yield func(*rollout.Rollout, error) bool) { yield(nil, nil) }

	errs := map[string]func() error{
		"ctxwindow Apply": func() error { _, err := ctxwindow.Apply(none, nil); return err },
		"ctxwindow Plan": func() error {
			_, _, err := ctxwindow.Plan(ctx, none, ctxwindow.None{}, enc.Counter(none))
			return err
		},
		"prm Builder Build": func() error { _, err := new(prm.Builder).Build(none, []prm.Step{{}}, 0); return err },
		"prm Scorer Score":  func() error { _, err := scorer.Score(ctx, none); return err },
		"prm Live Submit":   func() error { return scorer.Live(ctx).Submit(none) },
		"prm Live Scores":   func() error { _, err := scorer.Live(ctx).Scores(none); return err },
		"prm Scorer ScoreAll": func() error {
			return scorer.ScoreAll(ctx, one, func(*rollout.Rollout, []rollout.StepScore) error { return nil })
		},
		"reward CreditSteps": func() error { _, _, err := reward.CreditSteps(rollout.Sequence{}, none, nil); return err },
		"rollout/traj AppendATIF": func() error {
			_, _, err := traj.AppendATIF(nil, none)
			return err
		},
		"rollout/traj AppendChat": func() error {
			_, _, err := traj.AppendChat(nil, none)
			return err
		},
		"rollout Rollout Validate":     none.Validate,
		"rollout Rollout PromptTokens": func() error { _, err := none.PromptTokens(nil, 0); return err },
		"export/chats Writer Write":    func() error { _, err := set.Write(none); return err },
		"rollout/jsonl Write":          func() error { return jsonl.Write(io.Discard, none) },
		"rollout/jsonl Append":         func() error { _, err := jsonl.Append(nil, none); return err },
		"tokenize/exact Prompts End":   func() error { _, err := exactly.End(ctx, none); return err },
		"tokenize/prompt Sessions End": func() error { _, err := prompts.End(ctx, none); return err },
		"tokenize/prompt Tree Learn":   func() error { return prompts.Tree().Learn(ctx, none) },
		"internal/swerl Encode":        func() error { _, err := swerl.Encode(ctx, model, none, swerl.Options{}); return err },
		"tokenize Encoder Counter":     func() error { _, err := enc.Counter(none).Count(ctx, nil); return err },
		"tokenize Encoder Each":        func() error { _, err := enc.Each(ctx, none, func(rollout.Sequence) error { return nil }); return err },
		"tokenize Encoder EachRuns": func() error {
			_, err := enc.EachRuns(ctx, none, func(rollout.Sequence, []int32, []rollout.TokenID, []float32) error { return nil })
			return err
		},
		"tokenize Encoder Encode":    func() error { _, _, err := enc.Encode(ctx, none); return err },
		"tokenize Model TemplateFor": func() error { _, err := model.TemplateFor(none); return err },
		"tokenize Encoder Prompt":    func() error { _, err := enc.Prompt(ctx, none, nil); return err },
		"reward/pivot Data Row":      func() error { _, err := pivot.Data{}.Row(none, pivot.Candidate{}); return err },
		"tokenize Encoder Texts":     func() error { _, _, err := enc.Texts(ctx, none, 0); return err },
	}
	for name, call := range errs {
		require.NotPanics(t, func() {
			err := call()
			require.ErrorIs(t, err, rollout.KindInput, name)
			require.ErrorContains(t, err, "the rollout is nil (leave it out)", name)
		}, name)
	}
	empty := map[string]func(){
		"prm StepsOf":                    func() { require.Empty(t, prm.StepsOf(none)) },
		"reward/pivot Candidates":        func() { require.Empty(t, pivot.Candidates(none, true)) },
		"reward Of":                      func() { require.NotEmpty(t, reward.Of(none, rollout.Reward{}).Excluded) },
		"reward Score":                   func() { require.NotEmpty(t, reward.Score(none, reward.OutcomePolicy{}).Excluded) },
		"reward Infrastructure":          func() { require.Empty(t, reward.Infrastructure(none)) },
		"reward StepsOf":                 func() { require.Empty(t, reward.StepsOf(none, 1, 1)) },
		"internal/tally FactsOf":         func() { require.Zero(t, tally.FactsOf(0, none, rollout.Reward{})) },
		"internal/shaped FactsOf":        func() { require.Zero(t, shaped.FactsOf(none)) },
		"internal/shaped MemberOf":       func() { require.Nil(t, shaped.MemberOf(none, rollout.Reward{}, 0, "", nil).Oldest) },
		"internal/shaped Recorded":       func() { require.Nil(t, shaped.Recorded(none, nil)) },
		"reward/detect Detector FindAll": func() { require.Empty(t, detect.Detector{}.FindAll(none)) },
		"tokenize/prompt Sessions Prompt": func() {
			p, err := prompts.Prompt(ctx, none, prompt.Request{})
			require.NoError(t, err)
			require.NotEmpty(t, p.IDs)
		},
		"rollout Rollout TemperatureAt": func() { require.Nil(t, none.TemperatureAt(0)) },
		"rollout TurnsOf":               func() { require.Empty(t, rollout.TurnsOf(none)) },
	}
	for name, call := range empty {
		require.NotPanics(t, call, name)
	}

	require.ErrorIs(t, lossmask.Explain(io.Discard, nil, nil), rollout.KindInput)

	golden, err := os.ReadFile(filepath.Join("testdata", "api.txt"))
	require.NoError(t, err)
	found := append(takesRollout.FindAllStringSubmatch(string(golden), -1), ofRollout.FindAllStringSubmatch(string(golden), -1)...)
	require.NotEmpty(t, found)
	for _, m := range found {
		name := m[1]
		for _, part := range m[2:] {
			if part != "" {
				name += " " + part
			}
		}
		if m[1] == "Rollout" {
			name = "rollout " + name
		}
		_, refuses := errs[name]
		_, is := empty[name]
		require.True(t, refuses || is, "%s is given a rollout and not in the lists above", name)
	}
}
