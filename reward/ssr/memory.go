package ssr

import (
	"context"
	"errors"

	"github.com/turnpack/turnpack/reward/patch"
	"github.com/turnpack/turnpack/rollout"
)

// MemoryEnv is an [Env] without a disk: it builds each state in memory and hands
// it to a function that plays test script and parser.
type MemoryEnv struct {
	// Files is the original repository. It is never changed.
	Files patch.Tree
	// Artifact supplies the patches of the states.
	Artifact Artifact
	// Test runs the suite on a repository and returns the parser's output. The
	// tree is its own to change.
	Test func(ctx context.Context, tree patch.Tree) (string, error)
}

// HasFile looks the path up in Files.
func (m *MemoryEnv) HasFile(_ context.Context, path string) (bool, error) {
	_, there := m.Files[path]
	return there, nil
}

// Run builds the state and tests it. A patch of the artifact or of the solver
// that does not apply is no failure of the infrastructure: the output is then
// empty, which no check takes for a passing suite.
func (m *MemoryEnv) Run(ctx context.Context, state State) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	if m.Test == nil {
		return "", rollout.Errorf(rollout.KindInput, rollout.Where{Field: "Test"}, "a MemoryEnv needs a Test function")
	}
	tree, err := m.Artifact.Tree(m.Files, state)
	if errors.Is(err, rollout.KindInput) || errors.Is(err, rollout.KindFormat) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return m.Test(ctx, tree)
}

// Judge checks an artifact: what needs no run first, then the seven checks in
// env. A malformed artifact is the injector's fault and gives a verdict, not an
// error. original is the repository for [Artifact.Facts], nil if not at hand.
func Judge(ctx context.Context, env Env, a Artifact, original patch.Tree, settings Settings) (Verdict, error) {
	if err := settings.Validate(); err != nil {
		return Verdict{}, err
	}
	if err := a.Validate(); err != nil {
		return Verdict{Malformed: err, Reason: "malformed"}, nil
	}
	facts, err := a.Facts(original)
	if err != nil {
		return Verdict{Malformed: err, Reason: "malformed"}, nil
	}
	return Check(ctx, env, facts, settings)
}

// Grade runs the original tests on a repaired repository and says how the
// attempt ended. Output that is no test map means that the suite did not run:
// the attempt failed. Original names the tests that must pass; an error of env
// means InfraError and is returned beside it.
func Grade(ctx context.Context, env Env, fix string, original Results) (Attempt, Results, error) {
	output, err := env.Run(ctx, State{Kind: Repaired, Fix: fix})
	if err != nil {
		return InfraError, nil, err
	}
	results, _ := looseResults(output)
	if len(original) == 0 {
		return Unsolved, results, nil
	}
	for test := range original {
		if !results.passing(test) {
			return Unsolved, results, nil
		}
	}
	return Solved, results, nil
}
