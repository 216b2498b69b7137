package data

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/turnpack/turnpack/prm"
)

// judgePrompt is the version of the prompt below. Change it with every change of the
// text.
const judgePrompt = "pivot-judge-1"

const judgeSystem = `You read one step of a coding agent that repaired a repository. Say whether the step is a pivot: a point where a capable engineer could plausibly have taken another step, and where the choice decides whether the repair works.

A weaker engineer could go wrong here in one of these ways:
P1 mends the place where the fault shows, not the one that makes it
P2 had the right repair at hand and gives it up
P3 mends a part: callers, other files or edge cases stay broken
P4 writes far more than the repair needs
P5 jumps from guess to guess without evidence
P6 has the right idea and writes a step that fails: wrong text, path or command

Routine steps (listing a folder, reading the file that was named, repeating a command) are no pivots.
Think briefly, then end with one line: PIVOT: none, or PIVOT: with one or more of P1 to P6.`

// maxShown is the number of characters that the judge sees from each end of a text.
const maxShown = 3000

var verdictLine = regexp.MustCompile(`(?im)^\W*PIVOT:\s*(none|P[1-6](?:[,\s]+P[1-6])*)\W*$`)

// voteOnSteps lets the judge vote on every step. tags holds the kinds named for steps that a
// majority of votes calls a pivot, nil for the others. failed holds the error of each
// step without a vote.
func voteOnSteps(ctx context.Context, judge prm.Judge, steps []step, votes int) (tags [][]string, failed []error, err error) {
	tags, failed = make([][]string, len(steps)), make([]error, len(steps))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(32)
	for i, s := range steps {
		g.Go(func() error {
			pivots, cast := 0, 0
			var named []string
			for v := range votes {
				id := prm.VoteID{Rollout: s.Rollout, Step: s.Turn, Vote: v}
				reply, err := judge.Judge(ctx, prm.Request{Messages: prompt(s), Seed: prm.Seed(0, id), ID: id})
				if err == nil {
					all := verdictLine.FindAllStringSubmatch(reply.Text, -1)
					if len(all) > 0 {
						cast++
						if last := all[len(all)-1][1]; !strings.EqualFold(last, "none") {
							pivots++
							named = append(named, strings.FieldsFunc(strings.ToUpper(last), func(r rune) bool { return r == ',' || r == ' ' || r == '\t' })...)
						}
						continue
					}
					err = fmt.Errorf("the answer ends in no verdict: %.80q", reply.Text)
				}
				if ctx.Err() != nil {
					return ctx.Err()
				}
				failed[i] = err
			}
			if cast > 0 {
				failed[i] = nil
			}
			if 2*pivots > cast {
				slices.Sort(named)
				tags[i] = slices.Compact(named)
			}
			return nil
		})
	}
	return tags, failed, g.Wait()
}

// prompt returns the judge's prompt: the task, the latest steps and the step in question.
func prompt(s step) []prm.Message {
	var b strings.Builder
	input := s.row.Request.Input
	const latest = 8
	for i, item := range input {
		if i > 1 && i < len(input)-latest {
			if i == 2 {
				fmt.Fprintf(&b, "[%d earlier items left out]\n\n", len(input)-latest-2)
			}
			continue
		}
		switch {
		case item.Type == "reasoning":
			fmt.Fprintf(&b, "## thought\n%s\n\n", shortened(item.Summary[0].Text))
		case item.Type == "function_call":
			fmt.Fprintf(&b, "## call of %s\n%s\n\n", item.Name, shortened(*item.Arguments))
		case item.Type == "function_call_output":
			fmt.Fprintf(&b, "## result\n%s\n\n", shortened(*item.Output))
		default:
			fmt.Fprintf(&b, "## %s\n%s\n\n", item.Role, shortened(*item.Content))
		}
	}
	expected, _ := json.Marshal(s.row.ExpectedAction) // json.Marshal made it
	fmt.Fprintf(&b, "# The step in question\n%s\n", shortened(string(expected)))
	return []prm.Message{{Role: "system", Content: judgeSystem}, {Role: "user", Content: b.String()}}
}

func shortened(text string) string {
	r := []rune(text)
	if len(r) <= 2*maxShown {
		return text
	}
	return string(r[:maxShown]) + "\n[…]\n" + string(r[len(r)-maxShown:])
}
