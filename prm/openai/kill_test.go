package openai_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/prm"
	"github.com/turnpack/turnpack/prm/journal"
	"github.com/turnpack/turnpack/prm/openai"
	"github.com/turnpack/turnpack/rollout"
)

const (
	jobEnv      = "TURNPACK_TEST_SCORING_JOB" // server, journal and result file for the child process
	jobRuns     = 25
	jobSteps    = 4
	jobParallel = 8
)

func jobRun(i int) *rollout.Rollout {
	r := &rollout.Rollout{ID: fmt.Sprint("run-", i), Messages: []rollout.Message{{Role: rollout.RoleUser, Content: fmt.Sprint("task ", i)}}}
	for s := range jobSteps {
		r.Messages = append(r.Messages, rollout.Message{Role: rollout.RoleAssistant, Sampled: rollout.SampledByPolicy, Content: fmt.Sprintf("step %d of %d", s, i)})
	}
	return r
}

// scoringJob is the job of the child process: it scores rollouts with a journal.
func scoringJob(url, votes, result string) error {
	o := quick(url)
	o.Concurrency = jobParallel
	c, err := openai.New(o)
	if err != nil {
		return err
	}
	j, err := journal.Open(votes)
	if err != nil {
		return err
	}
	s, err := prm.NewScorer(c, prm.Options{Journal: j, Identity: c.Identity(), Concurrency: jobParallel, Votes: 3})
	if err != nil {
		return err
	}
	f, err := os.Create(result)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	err = s.ScoreAll(context.Background(), func(yield func(*rollout.Rollout, error) bool) {
		for i := 0; i < jobRuns && yield(jobRun(i), nil); i++ {
		}
	}, func(r *rollout.Rollout, scores []rollout.StepScore) error {
		for i := range scores {
			for k := range scores[i].Votes {
				scores[i].Votes[k].Millis = 0
			}
		}
		return json.NewEncoder(w).Encode(map[string]any{"id": r.ID, "steps": scores})
	})
	if err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if err := j.Close(); err != nil {
		return err
	}
	return f.Close()
}

func TestMain(m *testing.M) {
	if spec := os.Getenv(jobEnv); spec != "" {
		var args [3]string
		err := json.Unmarshal([]byte(spec), &args)
		if err == nil {
			err = scoringJob(args[0], args[1], args[2])
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// A job killed several times with SIGKILL ends with the scores of an uninterrupted job, and repeats no
// call except those in flight at each kill.
func TestKilledJobResumes(t *testing.T) {
	if _, err := os.Executable(); err != nil {
		t.Skipf("SKIPPED: the test binary cannot find itself (%v); run it from a folder that can be read", err)
	}
	for _, many := range []bool{true, false} {
		t.Run(fmt.Sprintf("several votes per request %t", many), func(t *testing.T) {
			f := newFake(t, func(w http.ResponseWriter, _ *http.Request, req seen) bool {
				time.Sleep(time.Millisecond)
				if !many && req.N > 1 {
					status(w, 400, `{"message":"n must be 1"}`)
					return true
				}
				return false
			})
			dir := t.TempDir()
			whole, resumed := filepath.Join(dir, "whole"), filepath.Join(dir, "resumed")
			child := func(name string) *exec.Cmd {
				spec, err := json.Marshal([3]string{f.url(), name + ".journal", name + ".jsonl"})
				require.NoError(t, err)
				cmd := exec.Command(os.Args[0], "-test.run=^$")
				cmd.Env = append(os.Environ(), jobEnv+"="+string(spec))
				cmd.Stderr = os.Stderr
				return cmd
			}
			require.NoError(t, child(whole).Run())
			undisturbed := f.requests.Swap(0)

			kills := 0
			for _, at := range []int64{undisturbed / 5, undisturbed / 2, undisturbed * 3 / 4} {
				cmd := child(resumed)
				require.NoError(t, cmd.Start())
				deadline := time.Now().Add(30 * time.Second)
				for f.requests.Load() < at && time.Now().Before(deadline) {
					time.Sleep(200 * time.Microsecond)
				}
				require.NoError(t, cmd.Process.Kill())
				require.Error(t, cmd.Wait(), "the job was still at work")
				kills++
			}
			require.NoError(t, child(resumed).Run())
			want, got := readLines(t, whole+".jsonl"), readLines(t, resumed+".jsonl")
			require.Len(t, got, jobRuns)
			for i := range want {
				require.Equal(t, want[i], got[i], "scores and raw votes of rollout %d", i)
			}
			// Each start may also detect again that n is refused, with one request per slot.
			slack := int64(kills * jobParallel)
			if !many {
				slack += int64((kills + 1) * jobParallel)
			}
			require.LessOrEqual(t, f.requests.Load(), undisturbed+slack, "calls repeated beyond those in flight")

			before := f.requests.Load()
			require.NoError(t, child(resumed).Run())
			require.Equal(t, before, f.requests.Load(), "a finished job asks nothing")
		})
	}
}

func readLines(t *testing.T, path string) []string {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	return strings.Split(strings.TrimSpace(string(b)), "\n")
}
