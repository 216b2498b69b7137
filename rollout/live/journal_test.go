package live_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/live"
	"github.com/turnpack/turnpack/rollout/traj"
)

func recorder(t testing.TB, dir string, jo live.JournalOptions, o live.Options) (*live.Recorder, *live.Journal) {
	t.Helper()
	j, err := live.OpenJournal(dir, jo)
	require.NoError(t, err)
	t.Cleanup(func() { _ = j.Close() })
	o.Journal = j
	rec, err := live.New(o)
	require.NoError(t, err)
	return rec, j
}

func begin(t testing.TB, rec *live.Recorder, x live.Start) *live.Session {
	t.Helper()
	s, err := rec.Begin(t.Context(), x)
	require.NoError(t, err)
	return s
}

// ask makes one call.
func ask(t testing.TB, s *live.Session, prompt, output ids) {
	t.Helper()
	c, err := s.Begin(t.Context(), live.Request{Prompt: prompt})
	require.NoError(t, err)
	require.NoError(t, c.End(t.Context(), live.Reply{Output: output, Logprobs: make([]float32, len(output)), FinishReason: "stop"}))
}

func solved(yes bool) live.Ending {
	return live.Ending{Outcome: rollout.Outcome{Resolved: &yes}, Status: rollout.StatusCompleted}
}

// told returns the rollouts of a journal.
func told(t testing.TB, dir string) []*rollout.Rollout {
	t.Helper()
	var out []*rollout.Rollout
	for r, err := range live.Read(dir) {
		require.NoError(t, err)
		out = append(out, r)
	}
	return out
}

const killed = "TURNPACK_TEST_JOURNAL"

// work continues three rollouts of a fixed script from the state in the journal, and prints each step once it
// is durable. The output depends on nothing else.
func work(t *testing.T, dir string, out *bufio.Writer) {
	rec, j := recorder(t, dir, live.JournalOptions{SegmentBytes: 8 << 10}, live.Options{})
	var mu sync.Mutex
	var wg sync.WaitGroup
	for n := range 3 {
		wg.Go(func() {
			s, err := rec.Begin(t.Context(), live.Start{ID: fmt.Sprint("r", n), Group: "g", Index: n})
			if err != nil {
				panic(err)
			}
			r, err := s.Rollout()
			if err != nil {
				panic(err)
			}
			messages := []rollout.Message{{Role: rollout.RoleUser, Content: fmt.Sprint("task ", n)}}
			prompt := ids{1, 2, rollout.TokenID(n)}
			for step := range 40 {
				output := ids{rollout.TokenID(100 + step), rollout.TokenID(200 + n), 7}
				reply := rollout.Message{Role: rollout.RoleAssistant, Content: fmt.Sprint("reply ", step)}
				if step >= len(r.Turns) {
					c, err := s.Begin(t.Context(), live.Request{Messages: messages, Prompt: prompt})
					if err == nil {
						err = c.End(t.Context(), live.Reply{ID: fmt.Sprint("response-", step), Message: &reply, Output: output, Logprobs: []float32{-1, -float32(step) / 3, -0.1},
							Usage: live.Usage{PromptTokens: len(prompt), CompletionTokens: 3}})
					}
					if err != nil {
						panic(err)
					}
					mu.Lock()
					fmt.Fprintf(out, "%d %d\n", n, step)
					out.Flush()
					mu.Unlock()
				}
				messages = append(messages, reply, rollout.Message{Role: rollout.RoleUser, Content: fmt.Sprint("seen ", step)})
				prompt = slices.Concat(prompt, output, ids{rollout.TokenID(50 + step)})
			}
			if _, err := s.End(t.Context(), solved(n == 1)); err != nil {
				panic(err)
			}
		})
	}
	wg.Wait()
	require.NoError(t, j.Close())
	fmt.Fprintln(out, "done")
	out.Flush()
}

// After any number of kills at any moment the journal yields the same rollouts in the same bytes as without
// kills, and contains each durable reply.
func TestKilledRecorders(t *testing.T) {
	kit.Long(t)
	if dir := os.Getenv(killed); dir != "" {
		work(t, dir, bufio.NewWriter(os.Stdout))
		return
	}
	child := func(dir string) *exec.Cmd {
		run := exec.Command(os.Args[0], "-test.run=^TestKilledRecorders$")
		run.Env = append(os.Environ(), killed+"="+dir)
		return run
	}
	whole := t.TempDir()
	begin := time.Now()
	text, err := child(whole).CombinedOutput()
	require.NoError(t, err, string(text))
	took := time.Since(begin)
	want := map[string]string{}
	for _, r := range told(t, whole) {
		require.Len(t, r.Turns, 40)
		want[r.ID] = lines(t, r)
	}
	require.Len(t, want, 3)
	kills, most, torn := 0, 60, 0
	if testing.Short() {
		most = 12
	}
	for round := 0; kills < most; round++ {
		dir, done := t.TempDir(), map[int]int{}
		for try := 0; ; try++ {
			run := child(dir)
			var out bytes.Buffer
			run.Stdout = &out
			require.NoError(t, run.Start())
			if try < 8 {
				time.Sleep(took * time.Duration(2+(round*37+try*17)%60) / 100)
				_ = run.Process.Kill()
			}
			_ = run.Wait()
			finished := false
			for _, line := range strings.Split(out.String(), "\n") {
				var n, step int
				if c, _ := fmt.Sscan(line, &n, &step); c == 2 {
					require.Equal(t, done[n], step, "each step once, in order, from where it stood or one before")
					done[n] = step + 1
				}
				finished = finished || line == "done"
			}
			if finished {
				break
			}
			kills++
			for _, r := range told(t, dir) {
				var n int
				_, err := fmt.Sscanf(r.ID, "r%d", &n)
				require.NoError(t, err)
				require.GreaterOrEqual(t, len(r.Turns), done[n], "what was durable is there")
				done[n] = len(r.Turns) // one may be durable without having been printed
			}
			j, err := live.OpenJournal(dir, live.JournalOptions{})
			require.NoError(t, err)
			if j.Stats().Torn > 0 {
				torn++
			}
			require.NoError(t, j.Close())
		}
		got := map[string]string{}
		for _, r := range told(t, dir) {
			got[r.ID] = lines(t, r)
		}
		require.Equal(t, want, got)
	}
	t.Logf("%d kills, %d left a torn end", kills, torn)
}

// A journal cut at any byte opens, yields its intact records, and continues; one damaged at any byte before its
// last record is refused with the place, and left unchanged.
func TestTornAndDamaged(t *testing.T) {
	dir := t.TempDir()
	rec, j := recorder(t, dir, live.JournalOptions{}, live.Options{})
	s := begin(t, rec, live.Start{ID: "a"})
	ask(t, s, ids{1, 2}, ids{3, 4})
	path := filepath.Join(dir, "00000001.tpj")
	before, err := os.Stat(path)
	require.NoError(t, err)
	ask(t, s, ids{1, 2, 3, 4, 5}, ids{6})
	require.NoError(t, j.Close())
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	last := bytes.LastIndex(text, []byte("\x89tpr"))
	turns := func(dir string) int {
		n := 0
		for _, r := range told(t, dir) {
			n += len(r.Turns)
		}
		return n
	}
	other := t.TempDir()
	damaged := filepath.Join(other, "00000001.tpj")
	for cut := range len(text) {
		require.NoError(t, os.WriteFile(damaged, text[:cut], 0o600))
		had := turns(other)
		if int64(cut) >= before.Size() {
			require.Equal(t, 1, had, "cut at %d", cut)
		}
		j, err := live.OpenJournal(other, live.JournalOptions{})
		require.NoError(t, err, "cut at %d", cut)
		rec, err := live.New(live.Options{Journal: j})
		require.NoError(t, err, "cut at %d", cut)
		ask(t, begin(t, rec, live.Start{ID: "a"}), ids{9}, ids{8})
		require.NoError(t, j.Close())
		require.Equal(t, had+1, turns(other), "cut at %d", cut)
	}
	for at := range last {
		bad := bytes.Clone(text)
		bad[at] ^= 0x40
		require.NoError(t, os.WriteFile(damaged, bad, 0o600))
		_, err := live.OpenJournal(other, live.JournalOptions{})
		require.ErrorIs(t, err, rollout.KindFormat, "byte %d", at)
		var e *rollout.Error
		require.ErrorAs(t, err, &e)
		where, ok := e.Where.Byte.Get()
		require.True(t, ok)
		require.LessOrEqual(t, where, at)
		require.Equal(t, damaged, e.Where.File)
		left, err := os.ReadFile(damaged)
		require.NoError(t, err)
		require.Equal(t, bad, left)
	}
	require.NoError(t, os.WriteFile(damaged, append(bytes.Clone(text), make([]byte, 4096)...), 0o600))
	require.Equal(t, 2, turns(other), "a file system may leave zeros at the end")
	require.NoError(t, os.WriteFile(damaged, []byte("precious text of somebody"), 0o600))
	_, err = live.OpenJournal(other, live.JournalOptions{})
	require.ErrorIs(t, err, rollout.KindFormat)
}

// A full disk, too many open files and a failed fsync make new calls fail and lose nothing recorded.
func TestFullDisk(t *testing.T) {
	for _, op := range []string{"write", "open", "sync"} {
		dir := t.TempDir()
		var mu sync.Mutex
		full := false
		o, fault := live.JournalOptions{}, error(syscall.ENOSPC)
		if op == "open" {
			o.SegmentBytes, fault = 20, &os.PathError{Op: op, Err: syscall.EMFILE}
		}
		j, err := live.OpenFaulty(dir, o, func(now string) error {
			mu.Lock()
			defer mu.Unlock()
			if full && now == op {
				return fault
			}
			return nil
		})
		require.NoError(t, err)
		rec, err := live.New(live.Options{Journal: j})
		require.NoError(t, err)
		s := begin(t, rec, live.Start{ID: "a"})
		ask(t, s, ids{1}, ids{2})
		c, err := s.Begin(t.Context(), live.Request{Prompt: ids{1, 2, 3}})
		require.NoError(t, err)
		mu.Lock()
		full = true
		mu.Unlock()
		if op != "sync" {
			goesOn(t, j, rec, s, c, func() { mu.Lock(); full = false; mu.Unlock() })
			require.NoError(t, j.Err())
			require.NoError(t, j.Close())
			require.Len(t, told(t, dir)[0].Turns, 3)
			continue
		}
		err = c.End(t.Context(), live.Reply{Output: ids{4}, Logprobs: []float32{-1}})
		require.ErrorIs(t, err, live.ErrUnavailable, "the client must not be told")
		require.ErrorIs(t, err, rollout.KindInput)
		state, _ := became(s, c)
		require.Equal(t, live.StateIncomplete, state)
		mu.Lock()
		full = false // too late: only what came before the failure counts
		mu.Unlock()
		_, err = s.Begin(t.Context(), live.Request{Prompt: ids{1}})
		require.ErrorIs(t, err, live.ErrUnavailable)
		_, err = rec.Begin(t.Context(), live.Start{ID: "b"})
		require.ErrorIs(t, err, live.ErrUnavailable)
		require.ErrorIs(t, j.Err(), live.ErrUnavailable)
		require.Error(t, j.Close())
		rollouts := told(t, dir)
		require.Len(t, rollouts, 1)
		require.Len(t, rollouts[0].Turns, 1)
		rec, _ = recorder(t, dir, live.JournalOptions{}, live.Options{})
		s, ok := rec.Session("a")
		require.True(t, ok)
		ask(t, s, ids{1, 2, 3}, ids{4})
	}
}

// With a disk slower than the calls the queue is bounded: new calls beyond the limit are refused, while the
// ends of running calls wait and are recorded.
func TestLagIsBounded(t *testing.T) {
	dir := t.TempDir()
	held := make(chan struct{})
	var slow atomic.Bool
	j, err := live.OpenFaulty(dir, live.JournalOptions{MaxQueued: 8 << 10}, func(now string) error {
		if slow.Load() && now == "sync" {
			<-held
		}
		return nil
	})
	require.NoError(t, err)
	rec, err := live.New(live.Options{Journal: j})
	require.NoError(t, err)
	s := begin(t, rec, live.Start{ID: "a"})
	var running []*live.Call
	for range 4 {
		c, err := s.Begin(t.Context(), live.Request{Prompt: ids{1, 2, 3}})
		require.NoError(t, err)
		running = append(running, c)
	}
	slow.Store(true)
	ended := make(chan error, len(running))
	for _, c := range running {
		go func() {
			ended <- c.End(t.Context(), live.Reply{Message: &rollout.Message{Content: strings.Repeat("x", 4<<10)}, Output: ids{4}, Logprobs: []float32{-1}})
		}()
	}
	var refused error
	for deadline := time.Now().Add(10 * time.Second); refused == nil; {
		require.True(t, time.Now().Before(deadline))
		short, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
		if _, err := s.Begin(short, live.Request{Prompt: ids{1}}); !errors.Is(err, context.DeadlineExceeded) {
			refused = err
		}
		cancel()
	}
	require.ErrorIs(t, refused, rollout.KindLimit)
	require.ErrorIs(t, refused, live.ErrUnavailable, "which is 503 to a client")
	require.Contains(t, refused.Error(), "wait for the disk")
	require.Contains(t, refused.Error(), "raise live.JournalOptions.MaxQueued")
	_, err = rec.Begin(t.Context(), live.Start{ID: "b", Instance: strings.Repeat("x", 8<<10)})
	require.ErrorIs(t, err, live.ErrUnavailable)
	most := j.Stats().Queued
	require.Less(t, most, int64(8<<10+4*6<<10), "the bound, and the ends of the calls that ran")
	slow.Store(false)
	close(held)
	for range running {
		require.NoError(t, <-ended)
	}
	ask(t, s, ids{1, 2}, ids{4})
	require.NoError(t, j.Close())
	whole := 0
	for _, x := range told(t, dir)[0].Turns {
		if x.Incomplete == "" {
			whole++
		}
	}
	require.Equal(t, 5, whole)
}

// goesOn checks that while the disk is full new calls are refused and a reply waits for space.
func goesOn(t *testing.T, j *live.Journal, rec *live.Recorder, s *live.Session, c *live.Call, room func()) {
	ended := make(chan error, 1)
	go func() {
		ended <- c.End(t.Context(), live.Reply{Output: ids{4}, Logprobs: []float32{-1}})
	}()
	_, err := rec.Begin(t.Context(), live.Start{ID: "b"})
	require.ErrorIs(t, err, live.ErrUnavailable)
	_, err = s.Begin(t.Context(), live.Request{Prompt: ids{1}})
	require.ErrorIs(t, err, live.ErrUnavailable)
	queued := j.Stats().Queued
	for range 10 {
		_, err = s.Begin(t.Context(), live.Request{Prompt: ids{1}})
		require.ErrorIs(t, err, live.ErrUnavailable)
	}
	require.Equal(t, queued, j.Stats().Queued, "what is refused does not wait for the disk")
	select {
	case <-ended:
		t.Fatal("the client must not be told")
	case <-time.After(20 * time.Millisecond):
	}
	room()
	require.NoError(t, <-ended)
	state, _ := became(s, c)
	require.Equal(t, live.StateOK, state)
	ask(t, s, ids{1, 2, 3, 4}, ids{5})
}

// An old open session and undelivered groups are copied forward, and a kill before any write leaves the same
// rollouts.
func TestCompaction(t *testing.T) {
	dir, copies := t.TempDir(), t.TempDir()
	var armed atomic.Bool
	n := 0
	j, err := live.OpenFaulty(dir, live.JournalOptions{SegmentBytes: 6000}, func(op string) error {
		if armed.Load() && op == "write" { // one writes at a time
			n++
			require.NoError(t, os.CopyFS(filepath.Join(copies, fmt.Sprint(n)), os.DirFS(dir)))
		}
		return nil
	})
	require.NoError(t, err)
	rec, err := live.New(live.Options{Journal: j})
	require.NoError(t, err)
	old := begin(t, rec, live.Start{ID: "old"})
	c, err := old.Begin(t.Context(), live.Request{Prompt: ids{1, 2}, Messages: []rollout.Message{{Role: rollout.RoleUser, Content: "hi"}}})
	require.NoError(t, err)
	require.NoError(t, c.End(t.Context(), live.Reply{Output: ids{3}, Logprobs: []float32{-1}, Blob: []byte("experts"), FinishReason: "stop"}))
	ask(t, begin(t, rec, live.Start{ID: "old/sub", Parent: "old"}), ids{1, 2, 3, 4}, ids{5})
	waits := begin(t, rec, live.Start{ID: "waits", Group: "g"})
	ask(t, waits, ids{1}, ids{2})
	_, err = waits.End(t.Context(), solved(true))
	require.NoError(t, err)
	require.NoError(t, rec.CompleteGroup(t.Context(), live.Group{Key: "g", Sessions: []string{"waits"}}))
	want := map[string]string{}
	for r := range rec.Sessions() {
		x, err := r.Rollout()
		require.NoError(t, err)
		want[x.ID] = lines(t, x)
	}
	armed.Store(true)
	for i := range 16 {
		s := begin(t, rec, live.Start{ID: fmt.Sprint("s", i)})
		ask(t, s, ids{1, 2, 3}, make(ids, 300))
		_, err = s.End(t.Context(), solved(true))
		require.NoError(t, err)
		require.NoError(t, rec.Deliver(t.Context(), live.Batch{Key: fmt.Sprint("b", i), Digest: "d", Sessions: []string{s.ID()}}))
	}
	armed.Store(false)
	require.Less(t, j.Stats().Bytes, int64(40_000), "the folder stays small")
	same := func(rec *live.Recorder) {
		t.Helper()
		for id, line := range want {
			s, ok := rec.Session(id)
			require.True(t, ok, id)
			r, err := s.Rollout()
			require.NoError(t, err)
			require.Equal(t, line, lines(t, r))
		}
		s, _ := rec.Session("old")
		blob, err := s.Blob(c.ID())
		require.NoError(t, err)
		require.Equal(t, "experts", string(blob))
		require.Equal(t, []live.Group{{Key: "g", Sessions: []string{"waits"}}}, rec.Groups())
	}
	same(rec)
	ask(t, old, ids{1, 2, 3, 4, 5, 6}, ids{7})
	require.NoError(t, j.Close())
	rec, j = recorder(t, dir, live.JournalOptions{}, live.Options{MaxMemory: 1})
	s, _ := rec.Session("old")
	require.Len(t, callsOf(t, s), 3)
	require.NoError(t, j.Close())
	require.Greater(t, n, 80)
	for i := 1; i <= n; i += 1 + i%3 {
		kept := filepath.Join(copies, fmt.Sprint(i))
		read := map[string]string{}
		for _, r := range told(t, kept) {
			r.Notes = nil
			read[r.ID] = lines(t, r)
		}
		require.Equal(t, want["waits"], read["waits"])
		require.Equal(t, want["old"], read["old"])
		rec, j := recorder(t, kept, live.JournalOptions{}, live.Options{})
		same(rec)
		require.NoError(t, j.Close())
	}
}

// Keys of requests do not appear in the files.
func TestNoSecrets(t *testing.T) {
	const key = "sk-ant-SECRET-0123"
	dir := t.TempDir()
	rec, j := recorder(t, dir, live.JournalOptions{}, live.Options{})
	raw := json.RawMessage(`{"n":1.50,"extra_headers":{"Authorization":"Bearer ` + key + `","X-Api-Key":"` + key + `"},"list":[{"api_key":"` + key + `"}],"\u0061uthorization":"` + key + `"}`)
	s := begin(t, rec, live.Start{ID: "a", Metadata: map[string]json.RawMessage{"x-api-key": json.RawMessage(`"` + key + `"`), "request": raw}})
	c, err := s.Begin(t.Context(), live.Request{Prompt: ids{1}, Engine: "http://user:" + key + "@host:8000", Settings: raw,
		TemplateKwargs: map[string]json.RawMessage{"authorization": raw}})
	require.NoError(t, err)
	require.NoError(t, c.Abort(t.Context(), `502: {"Authorization": "Bearer `+key+`"} x-api-key: `+key))
	x := solved(false)
	x.Status, x.Failure = rollout.StatusFailed, &rollout.Failure{Reason: "engine", Detail: "sent authorization: Bearer " + key}
	x.Metadata = map[string]json.RawMessage{"headers": raw}
	r, err := s.End(t.Context(), x)
	require.NoError(t, err)
	require.NotContains(t, lines(t, r), key)
	again, err := s.End(t.Context(), x)
	require.NoError(t, err)
	require.Equal(t, r, again)
	require.NoError(t, j.Close())
	text, err := os.ReadFile(filepath.Join(dir, "00000001.tpj"))
	require.NoError(t, err)
	require.NotContains(t, string(text), key)
	require.Contains(t, string(text), "http://host:8000")
	require.Contains(t, string(text), `1.50`, "numbers stay as they were written")
}

// Segments are removed once all their sessions are delivered, not earlier; the remaining journal opens.
func TestRetention(t *testing.T) {
	dir := t.TempDir()
	rec, j := recorder(t, dir, live.JournalOptions{SegmentBytes: 2 << 10, MaxDelivered: 1}, live.Options{})
	slow := begin(t, rec, live.Start{ID: "slow"})
	play := func(id string) {
		s := begin(t, rec, live.Start{ID: id, Group: "g"})
		child := begin(t, rec, live.Start{ID: id + "/sub", Parent: id, Agent: "sub"})
		for k := range 5 {
			ask(t, s, ids{1, rollout.TokenID(k)}, ids{3})
			ask(t, child, ids{2, rollout.TokenID(k)}, ids{3})
		}
		_, err := s.End(t.Context(), solved(true))
		require.NoError(t, err)
	}
	deliver := func(key string, sessions ...string) {
		require.NoError(t, rec.CompleteGroup(t.Context(), live.Group{Key: key, Sessions: sessions}))
		require.NoError(t, rec.CompleteGroup(t.Context(), live.Group{Key: key, Sessions: sessions}))
		require.Len(t, rec.Groups(), 1)
		b := live.Batch{Key: key + "@1", Group: key, Digest: "d", Sessions: sessions}
		require.NoError(t, rec.Deliver(t.Context(), b))
		require.NoError(t, rec.Deliver(t.Context(), b), "once more changes nothing")
		require.Empty(t, rec.Groups())
		b.Digest = "other"
		require.ErrorIs(t, rec.Deliver(t.Context(), b), live.ErrConflict)
	}
	require.ErrorIs(t, rec.Deliver(t.Context(), live.Batch{Key: "x", Sessions: []string{"slow"}}), live.ErrConflict, "it has not ended")
	require.ErrorIs(t, rec.Deliver(t.Context(), live.Batch{Key: "x", Sessions: []string{"none"}}), live.ErrUnknown)
	play("a")
	play("b")
	deliver("g1", "a", "b")
	segments := j.Stats().Segments
	require.Greater(t, segments, 3)
	_, err := rec.Begin(t.Context(), live.Start{ID: "a"})
	require.ErrorIs(t, err, live.ErrFinished)
	_, err = slow.End(t.Context(), solved(false))
	require.NoError(t, err)
	play("c")
	deliver("g2", "slow")
	require.Less(t, j.Stats().Segments, segments, "the first ones went with the slow session")
	require.NoFileExists(t, filepath.Join(dir, "00000001.tpj"))
	require.NoError(t, j.Close())

	rec, j = recorder(t, dir, live.JournalOptions{}, live.Options{})
	var open []string
	for s := range rec.Sessions() {
		open = append(open, s.ID())
	}
	require.Equal(t, []string{"c"}, open, "what was delivered does not come again")
	digest, ok := rec.Delivered("g2@1")
	require.True(t, ok)
	require.Equal(t, "d", digest)
	deliver("g3", "c")
	require.Zero(t, rec.Stats().Sessions)
	require.NoError(t, j.Close())
	paths, err := filepath.Glob(filepath.Join(dir, "*.tpj"))
	require.NoError(t, err)
	require.NoError(t, os.Remove(paths[0]))
}

// The folder of a journal is a dump: its rollouts, with a note on open ones.
func TestJournalIsADump(t *testing.T) {
	dir := t.TempDir()
	rec, j := recorder(t, dir, live.JournalOptions{SegmentBytes: 1 << 10}, live.Options{})
	for _, id := range []string{"a", "b"} {
		s := begin(t, rec, live.Start{ID: id, Group: "g"})
		prompt := ids{1, 2, 3}
		for range 4 {
			ask(t, s, prompt, ids{4, 5})
			prompt = append(prompt, 4, 5, 6)
		}
	}
	s, _ := rec.Session("b")
	_, err := s.End(t.Context(), solved(true))
	require.NoError(t, err)
	read, err := traj.Open([]string{dir}, traj.Options{OnError: rollout.OnErrorStop}) // while it is being written
	require.NoError(t, err)
	var got []*rollout.Rollout
	for r, err := range read.All() {
		require.NoError(t, err)
		require.NoError(t, r.Validate())
		got = append(got, r)
	}
	require.Len(t, got, 2)
	require.Equal(t, "b", got[0].ID)
	require.True(t, *got[0].Outcome.Resolved)
	require.Equal(t, "turnpack-journal", got[0].Origin.Format)
	require.Empty(t, got[0].Notes)
	require.Equal(t, "unfinished", got[1].Notes[0].Code)
	require.Len(t, got[1].Turns, 4)
	full, err := got[1].PromptTokens(nil, 3)
	require.NoError(t, err)
	require.Equal(t, ids{1, 2, 3, 4, 5, 6, 4, 5, 6, 4, 5, 6}, full)
	require.Equal(t, 11, got[1].Turns[3].Prompt.Keep, "prompts stay stored against earlier turns")
	require.NoError(t, j.Close())
}

// A journal has one process at a time, and its goroutine ends with it.
func TestOneWriter(t *testing.T) {
	before := runtime.NumGoroutine()
	dir := t.TempDir()
	rec, j := recorder(t, dir, live.JournalOptions{MaxDelay: time.Millisecond}, live.Options{})
	_, err := live.OpenJournal(dir, live.JournalOptions{})
	require.ErrorIs(t, err, live.ErrUnavailable)
	_, err = live.New(live.Options{Journal: j})
	require.ErrorIs(t, err, live.ErrConflict)
	s := begin(t, rec, live.Start{})
	require.NoError(t, j.Close())
	require.NoError(t, j.Close())
	_, err = s.Begin(t.Context(), live.Request{})
	require.ErrorIs(t, err, live.ErrUnavailable)
	for wait := time.Now(); runtime.NumGoroutine() > before && time.Since(wait) < time.Second; {
		time.Sleep(time.Millisecond)
	}
	require.LessOrEqual(t, runtime.NumGoroutine(), before)
	_, err = live.OpenJournal(t.TempDir(), live.JournalOptions{SegmentBytes: -1})
	require.ErrorIs(t, err, rollout.KindInput)
	_, err = live.New(live.Options{MaxBlob: -1})
	require.ErrorIs(t, err, rollout.KindInput)
}
