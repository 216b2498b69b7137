package ssr

import (
	"context"

	"github.com/turnpack/turnpack/reward/patch"
)

// Judge checks an artifact: first [Artifact.Validate], then the seven checks in env. A malformed
// artifact is the injector's fault and gives a verdict, not an error. original is the repository for
// [Artifact.Facts], nil if unknown.
func Judge(ctx context.Context, env Env, a Artifact, original patch.Tree, settings Settings) (Verdict, error) {
	if err := settings.Validate(); err != nil {
		return Verdict{}, err
	}
	err := a.Validate()
	var facts Facts
	if err == nil {
		facts, err = a.Facts(original)
	}
	if err != nil {
		return Verdict{Malformed: err, Reason: "malformed"}, nil
	}
	return Check(ctx, env, facts, settings)
}

// Grade runs the original tests on a repaired repository and returns how the attempt ended, with the
// test results. Output that is not a test map means that the suite did not run, so the attempt failed.
// original names the tests that must pass; an error of env is returned with InfraError.
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
