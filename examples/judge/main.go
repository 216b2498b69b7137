// Command judge scores the steps of a few rollouts with an LLM judge and prints the
// votes.
//
// Without --judge it starts a fake judge, so it runs anywhere. With --judge URL --model
// NAME it asks a real one.
package main

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"

	"github.com/turnpack/turnpack/examples/judge/fake"
	"github.com/turnpack/turnpack/prm"
	"github.com/turnpack/turnpack/prm/openai"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/jsonl"
)

//go:embed testdata/rollouts.jsonl
var sample []byte

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "judge:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) (err error) {
	fs := flag.NewFlagSet("judge", flag.ContinueOnError)
	url := fs.String("judge", "", "base `URL` of an OpenAI-compatible server (default: a fake one inside this program)")
	model := fs.String("model", "fake-judge", "judge model")
	votes := fs.Int("votes", 3, "votes per step")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if *url == "" {
		var stop func() error
		if *url, stop, err = serve(); err != nil {
			return err
		}
		defer stop()
	}

	client, err := openai.New(openai.Options{Endpoints: []string{*url}, Model: *model})
	if err != nil {
		return err
	}
	defer client.Close()
	scorer, err := prm.NewScorer(client, prm.Options{
		Votes:     *votes,
		Aggregate: prm.Aggregate{Method: "majority", Quorum: min(2, *votes)},
		Identity:  client.Identity(),
	})
	if err != nil {
		return err
	}
	var agreement prm.Tally
	in := jsonl.Read(bytes.NewReader(sample), jsonl.Options{File: "rollouts.jsonl"})
	err = scorer.ScoreAll(ctx, in, func(r *rollout.Rollout, steps []rollout.StepScore) error {
		agreement.Add(steps)
		return show(out, r, steps)
	})
	if err != nil {
		return err
	}
	a := agreement.Agreement()
	if a.Kappa != nil {
		fmt.Fprintf(out, "Fleiss' kappa %.3f over %d steps\n", *a.Kappa, a.Steps)
	}
	st := client.Stats()
	_, err = fmt.Fprintf(out, "%d requests, %d votes, %d+%d tokens\n", st.Requests, st.Votes, st.PromptTokens, st.CompletionTokens)
	return err
}

// show prints one line per step and the combined reward.
func show(out io.Writer, r *rollout.Rollout, steps []rollout.StepScore) error {
	fmt.Fprintln(out, r.ID)
	actions := map[int]string{}
	for _, s := range prm.StepsOf(r) {
		first, _, _ := strings.Cut(strings.TrimSpace(s.Action+"\n"+s.Response), "\n")
		actions[s.Index] = fmt.Sprintf("%-12s %s", s.Class, first)
	}
	for _, s := range steps {
		score := "  –"
		if s.Score != nil {
			score = fmt.Sprintf("%+3.0f", *s.Score)
		}
		marks := ""
		for _, v := range s.Votes {
			switch {
			case v.Score == nil:
				marks += "?"
			case *v.Score > 0:
				marks += "+"
			default:
				marks += "-"
			}
		}
		fmt.Fprintln(out, strings.TrimRight(fmt.Sprintf("  step %d %s %-4s %s %s", s.Step, score, marks, actions[s.Step], s.Reason), " "))
	}
	outcome := -1.0
	if r.Outcome.Resolved != nil && *r.Outcome.Resolved {
		outcome = 1
	}
	reward := prm.Combination{}.Combine(outcome, steps)
	mean := "none"
	if reward.Step != nil {
		mean = fmt.Sprintf("%+.3f", *reward.Step)
	}
	_, err := fmt.Fprintf(out, "  reward %+.3f = outcome %+.0f + mean step score %s\n", reward.Total, reward.Outcome, mean)
	return err
}

// serve starts the fake judge on the loopback interface.
func serve() (url string, stop func() error, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	srv := &http.Server{Handler: fake.New(fake.Options{})}
	go func() { _ = srv.Serve(l) }()
	return "http://" + l.Addr().String() + "/v1", srv.Close, nil
}
