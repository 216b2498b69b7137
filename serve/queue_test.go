package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack"
	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/export/stream"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/live"
	"github.com/turnpack/turnpack/rollout/live/gate"
)

func rows(ctx context.Context, group []*rollout.Rollout, w *export.Writer) error {
	_, err := turnpack.Pipeline{OnError: rollout.OnErrorStop}.Run(ctx, turnpack.Slice(group), w)
	return err
}

// service holds the parts of a process.
type service struct {
	journal *live.Journal
	rec     *live.Recorder
	stream  *stream.Stream
	*queue
}

func start(t testing.TB, dir string, o Groups, version ...func() *int32) *service {
	t.Helper()
	var s service
	var err error
	s.journal, err = live.OpenJournal(filepath.Join(dir, "journal"), live.JournalOptions{})
	require.NoError(t, err)
	s.rec, err = live.New(live.Options{Journal: s.journal})
	require.NoError(t, err)
	s.stream, err = stream.Open(filepath.Join(dir, "out"), export.Options{})
	require.NoError(t, err)
	if o.Rows == nil {
		o.Rows = rows
	}
	require.NoError(t, o.validate())
	now := func() *int32 { return nil }
	if version != nil {
		now = version[0]
	}
	s.queue, err = newQueue(s.rec, s.stream, o, now)
	require.NoError(t, err)
	return &s
}

func (s *service) close(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	require.NoError(t, errors.Join(s.queue.Close(ctx), s.stream.Close(), s.journal.Close()))
}

// handler serves the queue alone.
func (s *service) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /rollouts/{id}/end", s.serveEnd)
	mux.HandleFunc("GET /batches", s.serveNext)
	mux.HandleFunc("POST /batches/ack", s.serveAck)
	return mux
}

// play records a rollout of one call.
func (s *service) play(t testing.TB, id string, version int32) {
	t.Helper()
	x, err := s.rec.Begin(t.Context(), live.Start{ID: id})
	require.NoError(t, err)
	c, err := x.Begin(t.Context(), live.Request{Prompt: []rollout.TokenID{1, 2, 3}})
	require.NoError(t, err)
	require.NoError(t, c.Append([]rollout.TokenID{4, rollout.TokenID(len(id))}, []float32{-1, -0.5}, &version))
	require.NoError(t, c.End(t.Context(), live.Reply{FinishReason: "stop"}))
}

func resolved(group string, yes bool) endRequest {
	return endRequest{Group: group, Resolved: &yes}
}

// Answers stay the same: at once, after a restart, after delivery, and after both.
func TestEndIsIdempotent(t *testing.T) {
	dir := t.TempDir()
	s := start(t, dir, Groups{Size: 2})
	ctx := t.Context()
	meta := resolved("g", true)
	meta.Metadata = map[string]json.RawMessage{"a": json.RawMessage(`{"b":1}`)}
	s.play(t, "a", 1)
	s.play(t, "b", 1)
	first, err := s.End(ctx, "a", meta)
	require.NoError(t, err)
	require.Equal(t, endAnswer{Group: "g", Waiting: 1}, first)
	second, err := s.End(ctx, "b", resolved("g", false))
	require.NoError(t, err)
	require.NotNil(t, second.Batch)
	require.FileExists(t, second.Batch.Path)
	require.Equal(t, 2, second.Batch.Rows)
	again := func(after string) {
		got, err := s.End(ctx, "a", meta)
		require.NoError(t, err, after)
		require.Equal(t, first, got, after)
		got, err = s.End(ctx, "b", resolved("g", false))
		require.NoError(t, err, after)
		require.Equal(t, second, got, after)
		for id, other := range map[string]endRequest{"a": resolved("g", false), "b": resolved("h", false)} {
			_, err = s.End(ctx, id, other)
			require.ErrorIs(t, err, live.ErrConflict, after)
		}
	}
	again("at once")
	s.close(t)
	s = start(t, dir, Groups{Size: 2})
	again("a restart")
	require.ErrorIs(t, s.Ack(ctx, 2), live.ErrUnknown)
	require.NoError(t, s.Ack(ctx, 1))
	require.NoError(t, s.Ack(ctx, 1))
	again("the delivery")
	s.close(t)
	s = start(t, dir, Groups{Size: 2})
	defer s.close(t)
	again("both")
	_, err = s.End(ctx, "nobody", resolved("g", true))
	require.ErrorIs(t, err, live.ErrUnknown)
	require.Zero(t, s.Stats().Open)
	_, err = s.End(ctx, "lost", endRequest{Group: "g", Failure: "sandbox lost"})
	require.NoError(t, err, "it failed before its first call")
	require.Equal(t, 1, s.Stats().Waiting)
}

// Trainers and a service that are killed: each batch is delivered once, with the same bytes.
func TestOnce(t *testing.T) {
	dir := t.TempDir()
	ctx := t.Context()
	s := start(t, dir, Groups{Size: 1})
	taken := map[int][]byte{}
	acked := 0
	for step := range 12 {
		id := strings.Repeat("x", step+1)
		s.play(t, id, 1)
		_, err := s.End(ctx, id, resolved("g", true))
		require.NoError(t, err)
		if step%3 == 2 {
			s.close(t)
			s = start(t, dir, Groups{Size: 1})
		}
		b, err := s.Next(ctx, acked)
		require.NoError(t, err)
		require.Equal(t, acked+1, b.Seq, "the first that is not acknowledged")
		var arrow bytes.Buffer
		require.NoError(t, s.stream.WriteArrow(&arrow, b.Seq))
		if old, there := taken[b.Seq]; there {
			require.Equal(t, old, arrow.Bytes())
		}
		taken[b.Seq] = arrow.Bytes()
		if step%2 == 1 {
			require.NoError(t, s.Ack(ctx, b.Seq))
			acked = b.Seq
		}
	}
	require.Equal(t, 6, acked)
	short, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	_, err := s.Next(short, 12)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NoError(t, s.Ack(ctx, 12))
	_, err = s.Next(short, 0)
	require.ErrorIs(t, err, context.DeadlineExceeded, "what is acknowledged is not handed out again")
	require.Zero(t, s.rec.Stats().Sessions)
	s.close(t)
	b, _, err := export.ReadAll(filepath.Join(dir, "out", "data", "batch_000007.parquet"))
	require.NoError(t, err)
	require.Equal(t, "xxxxxxx", b[0].Rollout)
}

// A kill between the record of a complete group and its batch, and before either.
func TestGoesOn(t *testing.T) {
	for _, completed := range []bool{false, true} {
		dir := t.TempDir()
		ctx := t.Context()
		s := start(t, dir, Groups{Size: 2})
		for i, id := range []string{"a", "b"} {
			s.play(t, id, 1)
			x, ok := s.rec.Session(id)
			require.True(t, ok)
			yes := i == 0
			_, err := x.End(ctx, live.Ending{Group: "g@9", Index: i, Outcome: rollout.Outcome{Resolved: &yes}, Status: rollout.StatusCompleted})
			require.NoError(t, err)
		}
		if completed {
			require.NoError(t, s.rec.CompleteGroup(ctx, live.Group{Key: "g@9@3", Sessions: []string{"a", "b"}}))
		}
		s.close(t)
		s = start(t, dir, Groups{Size: 2})
		b, err := s.Next(ctx, 0)
		require.NoError(t, err)
		require.Equal(t, "g@9", b.Group)
		if completed {
			require.Equal(t, 3, b.Step)
		}
		require.Equal(t, 2, b.Rows)
		answer, err := s.End(ctx, "b", resolved("g@9", false))
		require.NoError(t, err)
		require.Equal(t, 1, answer.Batch.Seq)
		s.close(t)
	}
}

func TestDeadline(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		j, err := live.New(live.Options{})
		require.NoError(t, err)
		out, err := stream.Open(dir, export.Options{})
		require.NoError(t, err)
		q, err := newQueue(j, out, Groups{Rows: rows, Size: 4, Least: 2, Deadline: time.Hour}, func() *int32 { return nil })
		require.NoError(t, err)
		s := &service{rec: j, stream: out, queue: q}
		ctx := t.Context()
		for _, id := range []string{"a", "b", "late", "alone"} {
			s.play(t, id, 1)
		}
		time.Sleep(time.Second)
		for i, id := range []string{"a", "b", "alone"} {
			group := "g"
			if id == "alone" {
				group = "h"
			}
			answer, err := q.End(ctx, id, resolved(group, i == 0))
			require.NoError(t, err)
			require.Nil(t, answer.Batch)
		}
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		b, err := q.Next(ctx, 0)
		require.NoError(t, err)
		require.Equal(t, 2, b.Rows, "k of n")
		answer, err := q.End(ctx, "late", resolved("g", true))
		require.NoError(t, err)
		require.Equal(t, "it ended after the deadline of its group", answer.LeftOut)
		again, err := q.End(ctx, "late", resolved("g", true))
		require.NoError(t, err)
		require.Equal(t, answer, again)
		s.play(t, "new", 1)
		answer, err = q.End(ctx, "new", resolved("g", true))
		require.NoError(t, err)
		require.Equal(t, 3, answer.Waiting, "a rollout that began later is of the next step")
		stats := q.Stats()
		require.Equal(t, map[string]int{"late": 1, "too_few": 1}, stats.LeftOut)
		require.Equal(t, 1, stats.Last)
		require.NoError(t, q.Close(ctx))
		require.NoError(t, out.Close())
	})
}

// A deadline shorter than the time to read the record closes no group before all its ended rollouts are loaded.
func TestDeadlineAfterAKill(t *testing.T) {
	dir, groups := t.TempDir(), 20
	s := start(t, dir, Groups{Size: 4})
	for i := range 3 * groups {
		s.play(t, fmt.Sprint(i), 1)
		_, err := s.End(t.Context(), fmt.Sprint(i), resolved(fmt.Sprint("g", i%groups), i < groups))
		require.NoError(t, err)
	}
	s.close(t)
	s = start(t, dir, Groups{Size: 4, Deadline: 1})
	defer s.close(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for seq := range groups {
		b, err := s.Next(ctx, seq)
		require.NoError(t, err)
		require.Equal(t, 3, b.Rows)
	}
}

// Rollouts that are left out have a reason, and a group of which no batch can be made is refused alone.
func TestLeftOut(t *testing.T) {
	dir := t.TempDir()
	var refused []string
	age, panics, policy := int32(2), false, new(int32(9))
	s := start(t, dir, Groups{
		Size: 4, MaxAge: &age,
		Score: func(_ context.Context, r *rollout.Rollout) ([]rollout.StepScore, error) {
			if r.ID == "unscored" {
				panic("the judge is gone")
			}
			half := 0.5
			return []rollout.StepScore{{Step: 0, Score: &half}}, nil
		},
		Rows: func(ctx context.Context, group []*rollout.Rollout, w *export.Writer) error {
			if panics {
				panic("no such task")
			}
			return rows(ctx, group, w)
		},
		Refused: func(key stream.Key, err error) { refused = append(refused, key.Group+": "+err.Error()) },
	}, func() *int32 { return policy })
	defer s.close(t)
	ctx := t.Context()
	var answer endAnswer
	for id, version := range map[string]int32{"stale": 6, "good": 7, "other": 9, "unscored": 9} {
		s.play(t, id, version)
	}
	for _, id := range []string{"stale", "good", "unscored", "other"} {
		var err error
		answer, err = s.End(ctx, id, resolved("g", id == "good"))
		require.NoError(t, err)
	}
	got, _, err := export.ReadAll(answer.Batch.Path)
	require.NoError(t, err)
	require.Len(t, got, 2)
	require.Equal(t, []string{"good", "other"}, []string{got[0].Rollout, got[1].Rollout})
	require.NotNil(t, got[0].StepReward)
	require.Equal(t, map[string]int{"stale": 1, "not_scored": 1}, s.Stats().LeftOut)

	panics = true
	for i := range 4 {
		id := fmt.Sprint("bad", i)
		s.play(t, id, 9)
		answer, err = s.End(ctx, id, resolved("bad", true))
		require.NoError(t, err)
	}
	require.Nil(t, answer.Batch)
	require.Contains(t, answer.LeftOut, "no such task")
	require.Len(t, refused, 1)
	panics = false
	for i := range 4 {
		id := fmt.Sprint("well", i)
		s.play(t, id, 9)
		answer, err = s.End(ctx, id, resolved("well", i == 0))
		require.NoError(t, err)
	}
	require.Equal(t, 2, answer.Batch.Seq)
	require.NoError(t, s.Ack(ctx, 2))
	require.Zero(t, s.rec.Stats().Sessions, "the refused group is forgotten with it")

	policy = nil // as after a restart, until the trainer tells the version
	for i := range 4 {
		id := fmt.Sprint("after", i)
		s.play(t, id, int32(6+i))
		answer, err = s.End(ctx, id, resolved("after", i == 3))
		require.NoError(t, err)
	}
	require.Equal(t, 3, answer.Batch.Rows, "against the newest of the group")
}

// Rollouts in no batch, late ones and those of a refused group, get the same answer after they were forgotten
// and the service restarted; another ending is refused.
func TestForgottenAnswers(t *testing.T) {
	dir := t.TempDir()
	now := time.Now()
	o := Groups{Size: 2, Deadline: 50 * time.Millisecond, Now: func() time.Time { return now.Add(time.Hour) }}
	o.Rows = func(ctx context.Context, group []*rollout.Rollout, w *export.Writer) error {
		if group[0].Group == "bad" {
			return errors.New("no such task")
		}
		return rows(ctx, group, w)
	}
	s := start(t, dir, o)
	ctx := t.Context()
	want := map[string]endAnswer{}
	end := func(id, group string) {
		t.Helper()
		answer, err := s.End(ctx, id, resolved(group, true))
		require.NoError(t, err)
		want[id+" "+group] = answer
	}
	for _, id := range []string{"a", "late", "bad0", "bad1", "b", "c"} {
		s.play(t, id, 1)
	}
	end("bad0", "bad")
	end("bad1", "bad")
	require.Contains(t, want["bad1 bad"].LeftOut, "no such task")
	_, err := s.End(ctx, "a", resolved("g", true))
	require.NoError(t, err)
	b, err := s.Next(ctx, 0)
	require.NoError(t, err)
	end("late", "g")
	require.NotEmpty(t, want["late g"].LeftOut)
	require.NoError(t, s.Ack(ctx, b.Seq))
	require.Equal(t, 2, s.rec.Stats().Sessions, "b and c")
	for range 2 {
		s.close(t)
		s = start(t, dir, o)
		for name, answer := range want {
			id, group, _ := strings.Cut(name, " ")
			again, err := s.End(ctx, id, resolved(group, true))
			require.NoError(t, err, name)
			require.Equal(t, answer, again, name)
			_, err = s.End(ctx, id, resolved(group, false))
			require.ErrorIs(t, err, live.ErrConflict, name)
		}
		_, err = s.End(ctx, "nobody", resolved("bad", true))
		require.ErrorIs(t, err, live.ErrUnknown)
	}
	s.close(t)
}

// A full disk fails no group: the batch is made when there is space.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	s := start(t, dir, Groups{Size: 1})
	defer s.close(t)
	data := filepath.Join(dir, "out", "data")
	require.NoError(t, os.Rename(data, data+"x"))
	s.play(t, "a", 1)
	_, err := s.End(t.Context(), "a", resolved("g", true))
	status, after := gate.Answer(err)
	require.Equal(t, 503, status, "the harness sent nothing wrong: %v", err)
	require.NotEmpty(t, after)
	require.NoError(t, os.Rename(data+"x", data))
	b, err := s.Next(t.Context(), 0)
	require.NoError(t, err)
	require.Equal(t, 1, b.Seq)
}

// Groups that await the trainer stop new sessions; groups without a batch do not.
func TestFull(t *testing.T) {
	s := start(t, t.TempDir(), Groups{Size: 1, MaxUndelivered: 2})
	defer s.close(t)
	for i := range 20 {
		id := fmt.Sprint(i)
		_, err := s.End(t.Context(), id, endRequest{Group: id, Failure: "lost"})
		require.NoError(t, err)
	}
	require.Empty(t, s.Full())
	require.LessOrEqual(t, s.rec.Stats().Sessions, 17)
	for i := range 2 {
		id := fmt.Sprint("r", i)
		s.play(t, id, 1)
		require.Empty(t, s.Full())
		_, err := s.End(t.Context(), id, resolved(id, true))
		require.NoError(t, err)
	}
	require.Contains(t, s.Full(), "2 groups wait")
	require.NoError(t, s.Ack(t.Context(), 1))
	require.Empty(t, s.Full())
}

// Many harnesses end rollouts concurrently, some twice.
func TestConcurrent(t *testing.T) {
	before := runtime.NumGoroutine()
	s := start(t, t.TempDir(), Groups{Size: 4, Score: func(context.Context, *rollout.Rollout) ([]rollout.StepScore, error) { return nil, nil }})
	server := httptest.NewServer(s.handler())
	var wg sync.WaitGroup
	const groups = 8
	for i := range 4 * groups {
		id := fmt.Sprint("r", i)
		s.play(t, id, 1)
		for range 2 {
			wg.Go(func() {
				r, err := http.Post(server.URL+"/rollouts/"+id+"/end", "", strings.NewReader(fmt.Sprintf(`{"group":"g%d","resolved":true}`, i%groups)))
				if err != nil || r.StatusCode != 200 {
					t.Error(err, r)
				}
				r.Body.Close()
			})
		}
	}
	trained := 0
	for seq := range groups {
		r, err := http.Get(fmt.Sprintf("%s/batches?after=%d&wait=10s", server.URL, seq))
		require.NoError(t, err)
		require.Equal(t, 200, r.StatusCode)
		body, err := io.ReadAll(r.Body)
		require.NoError(t, errors.Join(err, r.Body.Close()))
		f, err := export.NewReader(bytes.NewReader(body), int64(len(body)))
		require.NoError(t, err)
		require.Equal(t, seq+1, f.Info().GroupSeq)
		for row, err := f.Read(); err == nil; row, err = f.Read() {
			trained += row.Sequence.Trained()
		}
		r, err = http.Post(server.URL+"/batches/ack", "", strings.NewReader(fmt.Sprintf(`{"seq":%d}`, seq+1)))
		require.NoError(t, err)
		require.Equal(t, 200, r.StatusCode)
		require.NoError(t, r.Body.Close())
	}
	require.Equal(t, 2*4*groups, trained)
	wg.Wait()
	r, err := http.Get(server.URL + "/batches?wait=1ms")
	require.NoError(t, err)
	require.Equal(t, http.StatusNoContent, r.StatusCode)
	require.NoError(t, r.Body.Close())
	for path, status := range map[string]int{"/batches?after=x": 400, "/batches?wait=-1s": 400, "/batches?after=9&wait=1h": 404} {
		r, err := http.Get(server.URL + path)
		require.NoError(t, err)
		require.Equal(t, status, r.StatusCode)
		require.NoError(t, r.Body.Close())
	}
	for body, status := range map[string]int{`{"seq":99}`: 404, `{"seq":0}`: 404, `{`: 400, `{"sek":1}`: 400} {
		r, err := http.Post(server.URL+"/batches/ack", "", strings.NewReader(body))
		require.NoError(t, err)
		require.Equal(t, status, r.StatusCode)
		require.NoError(t, r.Body.Close())
	}
	for body, status := range map[string]int{`{"group":"g"}`: 400, `{"group":"g0","resolved":false}`: 409, `{"resolved":true}`: 400} {
		r, err := http.Post(server.URL+"/rollouts/r0/end", "", strings.NewReader(body))
		require.NoError(t, err)
		require.Equal(t, status, r.StatusCode)
		require.NoError(t, r.Body.Close())
	}
	server.Close()
	http.DefaultClient.CloseIdleConnections()
	s.close(t)
	_, err = s.End(t.Context(), "r0", resolved("g0", true))
	require.ErrorIs(t, err, live.ErrUnavailable)
	for range 100 {
		if runtime.NumGoroutine() <= before {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	require.LessOrEqual(t, runtime.NumGoroutine(), before)
}

// If the trainer reads the folder, a batch counts as delivered once its file is there.
func TestFolder(t *testing.T) {
	dir := t.TempDir()
	s := start(t, dir, Groups{Size: 1})
	s.play(t, "a", 1)
	first, err := s.End(t.Context(), "a", resolved("a", true))
	require.NoError(t, err)
	s.close(t)
	s = start(t, dir, Groups{Size: 1, Folder: true})
	defer s.close(t)
	s.play(t, "b", 1)
	_, err = s.End(t.Context(), "b", resolved("b", true))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return s.rec.Stats().Sessions == 0 }, 20*time.Second, time.Millisecond)
	again, err := s.End(t.Context(), "a", resolved("a", true))
	require.NoError(t, err)
	require.Equal(t, first, again)
	n := 0
	for _, err := range s.stream.Batches() {
		require.NoError(t, err)
		n++
	}
	require.Equal(t, 2, n)
}
