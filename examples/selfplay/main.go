// Command selfplay plays one round of self-play SWE-RL on a toy repository:
// scripted injectors submit bugs, the seven checks judge them, scripted solvers
// try to repair what is valid, and both roles are rewarded.
//
// It runs in memory. With -local every state of the repository is written to a
// temporary directory and its tests are run by a shell, as a real environment
// would; the table is the same.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/turnpack/turnpack/reward/ssr"
)

func main() {
	local := flag.Bool("local", false, "run the tests as processes in temporary directories")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	env := inMemory
	if *local {
		env = inProcesses
	}
	if err := play(ctx, os.Stdout, env); err != nil {
		fmt.Fprintln(os.Stderr, "selfplay:", err)
		os.Exit(1)
	}
}

// play judges every submission, resolves the valid ones and writes what happened.
func play(ctx context.Context, w io.Writer, env func(ssr.Artifact) ssr.Env) error {
	group := ssr.InjectKey("toy/calculator", "c0ffee", "removal", 1)
	fmt.Fprintln(w, "injector group", group)
	var repos []string
	var valid []ssr.Artifact
	for _, s := range submissions() {
		verdict, err := ssr.Judge(ctx, env(s.artifact), s.artifact, repository(), thresholds())
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		if verdict.Malformed != nil {
			fmt.Fprintf(w, "%-12s malformed; injector %+.1f\n", s.name, ssr.InvalidReward)
			continue
		}
		if !verdict.Valid() {
			failed := verdict.Checks[verdict.FirstFailing-1]
			fmt.Fprintf(w, "%-12s check %d failed (%s): %s; injector %+.1f\n", s.name, failed.Number, failed.Name, verdict.Reason, ssr.InvalidReward)
			continue
		}
		repos, valid = append(repos, "toy/calculator"), append(valid, s.artifact)
		same, err := ssr.Dedup(repos, valid)
		if err != nil {
			return err
		}
		if last := len(valid) - 1; same[last] != last {
			fmt.Fprintf(w, "%-12s valid, but the same change as an earlier bug\n", s.name)
			repos, valid = repos[:last], valid[:last]
			continue
		}
		if err := resolve(ctx, w, env, s, verdict); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

// resolve lets the solvers try, rewards both roles and looks for a harder bug in
// the first failed attempt.
func resolve(ctx context.Context, w io.Writer, env func(ssr.Artifact) ssr.Env, s submission, verdict ssr.Verdict) error {
	original, err := originalResults(ctx, env(s.artifact))
	if err != nil {
		return err
	}
	var ends []ssr.Attempt
	failed := ""
	for _, fix := range s.fixes {
		end, _, err := ssr.Grade(ctx, env(s.artifact), fix, original)
		if err != nil && ctx.Err() != nil {
			return err // anything else is an attempt lost to the infrastructure
		}
		if end == ssr.Unsolved && fix != "" && failed == "" {
			failed = fix
		}
		ends = append(ends, end)
	}
	resolved, err := ssr.Resolve(ends, 2, ssr.DefaultAlpha)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "%-12s valid, breaks %d tests; %d of %d solved; ", s.name, len(verdict.Broken), resolved.Solved, resolved.Live)
	if resolved.Inject == nil {
		fmt.Fprintln(w, "too few attempts to reward the injector")
	} else {
		fmt.Fprintf(w, "injector %+.2f\n", *resolved.Inject)
	}
	if failed == "" {
		return nil
	}
	harder, err := s.artifact.Harder(failed)
	if err != nil {
		return err
	}
	verdict, err = ssr.Judge(ctx, env(harder), harder, repository(), thresholds())
	if err != nil {
		return err
	}
	if verdict.Valid() {
		fmt.Fprintf(w, "%-12s a failed repair makes a bug of order %d that breaks %d tests\n", "", harder.Order(), len(verdict.Broken))
	} else {
		fmt.Fprintf(w, "%-12s a failed repair makes no harder bug: check %d, %s\n", "", verdict.FirstFailing, verdict.Reason)
	}
	return nil
}

func originalResults(ctx context.Context, env ssr.Env) (ssr.Results, error) {
	output, err := env.Run(ctx, ssr.State{Kind: ssr.Original})
	if err != nil {
		return nil, err
	}
	results, reason := ssr.ParseResults(output)
	if reason != "" {
		return nil, fmt.Errorf("the original suite: %s", reason)
	}
	return results, nil
}
