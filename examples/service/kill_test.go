package main

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/export/stream"
	"github.com/turnpack/turnpack/internal/fakeengine"
	"github.com/turnpack/turnpack/rollout"
)

// taken is the checkpoint of the test's trainer: the number of its last batch and all
// that it trained on.
type taken struct {
	Seq     int
	Groups  []string
	Digests []string
	Rows    map[string]string // by sample
}

// train is the trainer process: it takes batches after its checkpoint, forever.
func train(url, file string) {
	t := taken{Rows: map[string]string{}}
	if text, err := os.ReadFile(file); err == nil {
		if err := json.Unmarshal(text, &t); err != nil {
			panic(err)
		}
	}
	for {
		r, err := http.Get(fmt.Sprintf("%s/batches?after=%d&wait=1s", url, t.Seq))
		if err != nil {
			time.Sleep(10 * time.Millisecond)
			continue
		}
		body, err := io.ReadAll(r.Body)
		r.Body.Close()
		if err != nil || r.StatusCode != http.StatusOK {
			continue
		}
		f, err := export.NewReader(bytes.NewReader(body), int64(len(body)))
		if err != nil {
			panic(err)
		}
		for row, err := f.Read(); err != io.EOF; row, err = f.Read() {
			if err != nil {
				panic(err)
			}
			if t.Rows[row.ID] != "" {
				panic("row " + row.ID + " comes twice")
			}
			t.Rows[row.ID] = rowDigest(&row)
			if n := len(t.Groups); n == 0 || t.Groups[n-1] != row.Group {
				t.Groups = append(t.Groups, row.Group)
			}
		}
		if f.Info().GroupSeq != t.Seq+1 {
			panic("batches are left out")
		}
		t.Seq = f.Info().GroupSeq
		sum := sha256.Sum256(body)
		t.Digests = append(t.Digests, hex.EncodeToString(sum[:]))
		text, err := json.Marshal(t)
		if err == nil {
			err = os.WriteFile(file+".new", text, 0o600)
		}
		if err == nil {
			err = os.Rename(file+".new", file)
		}
		if err != nil {
			panic(err)
		}
		ack, err := http.Post(url+"/batches/ack", "application/json", strings.NewReader(fmt.Sprintf(`{"seq":%d}`, t.Seq)))
		if err == nil {
			ack.Body.Close()
		}
	}
}

// rowDigest is a digest of the trained data, independent of the order in which rollouts
// end.
func rowDigest(s *rollout.Sample) string {
	text := fmt.Sprint(s.IDs, s.Weight, s.Logprob, s.Credit, s.Reward, s.Status)
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// process is a process that is killed and restarted at random.
type process struct {
	t    *testing.T
	env  string
	args []string
	cmd  *exec.Cmd
}

func (p *process) start() {
	p.cmd = exec.Command(os.Args[0], p.args...)
	p.cmd.Env = append(os.Environ(), p.env+"=1")
	p.cmd.Stderr = os.Stderr
	if p.env == "SERVICE_PROCESS" {
		p.cmd.Stderr = nil // the service logs there
	}
	require.NoError(p.t, p.cmd.Start())
}

func (p *process) kill() {
	require.NoError(p.t, p.cmd.Process.Kill())
	_ = p.cmd.Wait()
}

// persist sends a request until it gets an answer from a running service.
func persist(stop *atomic.Bool, url, body string) (string, error) {
	for !stop.Load() {
		r, err := http.Post(url, "application/json", strings.NewReader(body))
		if err != nil {
			time.Sleep(5 * time.Millisecond)
			continue
		}
		text, err := io.ReadAll(r.Body)
		r.Body.Close()
		switch {
		case err != nil || r.StatusCode == 503 || r.StatusCode == 429 || r.StatusCode == 502:
			time.Sleep(5 * time.Millisecond)
		case r.StatusCode != 200:
			return "", fmt.Errorf("%s: %d %s", url, r.StatusCode, text)
		default:
			return string(text), nil
		}
	}
	return "", errors.New("stopped")
}

// workload plays groups of rollouts and returns what the trainer took. If steps > 0, it
// takes files of that many groups.
func workload(t *testing.T, dir, engine string, groups, size, kills, steps int) taken {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := l.Addr().String()
	require.NoError(t, l.Close())
	url, file := "http://"+addr, filepath.Join(dir, "trainer.json")
	service := &process{t: t, env: "SERVICE_PROCESS", args: []string{"--model", modelFolder, "--engine", engine, "--listen", addr,
		"--journal", filepath.Join(dir, "journal"), "--out", filepath.Join(dir, "out"), "--group", strconv.Itoa(size), "--groups-per-step", strconv.Itoa(steps)}}
	trainer := &process{t: t, env: "TRAINER_PROCESS", args: []string{url, file}}
	service.start()
	if steps == 0 {
		trainer.start()
	}
	var stop atomic.Bool
	var wg sync.WaitGroup
	places := make(chan struct{}, 8)
	var left atomic.Int64
	left.Store(int64(groups * size))
	for i := range groups * size {
		wg.Go(func() {
			defer left.Add(-1)
			places <- struct{}{}
			defer func() { <-places }()
			base := fmt.Sprintf("%s/rollouts/r%03d", url, i)
			messages := []map[string]string{{"role": "user", "content": fmt.Sprint("task ", i)}}
			for range 3 {
				body, _ := json.Marshal(map[string]any{"model": "m", "max_tokens": 20, "messages": messages})
				text, err := persist(&stop, base+"/v1/chat/completions", string(body))
				var reply struct {
					Choices []struct{ Message struct{ Content string } }
				}
				if err == nil {
					err = json.Unmarshal([]byte(text), &reply)
				}
				if err != nil {
					t.Error(err)
					return
				}
				messages = append(messages, map[string]string{"role": "assistant", "content": reply.Choices[0].Message.Content}, map[string]string{"role": "user", "content": "and then"})
			}
			end := fmt.Sprintf(`{"group":"g%d","resolved":%v}`, i%groups, i/groups == 0)
			first, err := persist(&stop, base+"/end", end)
			if err != nil {
				t.Error(err)
				return
			}
			again, err := persist(&stop, base+"/end", end)
			if err != nil || first != again {
				t.Errorf("an end is answered %s, then %s (%v)", first, again, err)
			}
		})
	}
	r := rand.New(rand.NewPCG(1, 7))
	running := 0
	for range kills {
		if left.Load() > 0 {
			running++
		}
		time.Sleep(time.Duration(r.IntN(150)) * time.Millisecond)
		victim := service
		if steps == 0 && r.IntN(3) == 0 {
			victim = trainer
		}
		victim.kill()
		victim.start()
	}
	t.Logf("%d kills, %d while rollouts ran", kills, running)
	finished := time.AfterFunc(5*time.Minute, func() { stop.Store(true) })
	wg.Wait()
	finished.Stop()
	var got taken
	for range 3000 {
		if steps > 0 {
			got = stepFiles(t, filepath.Join(dir, "out", "steps"))
		} else if text, err := os.ReadFile(file); err == nil {
			got = taken{}
			require.NoError(t, json.Unmarshal(text, &got))
		}
		if len(got.Groups) >= groups || t.Failed() {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if steps == 0 {
		trainer.kill()
	}
	service.kill()
	return got
}

// stepFiles returns the contents of the step files in a folder, in order.
func stepFiles(t *testing.T, dir string) taken {
	t.Helper()
	got := taken{Rows: map[string]string{}}
	for {
		rows, _, err := export.ReadAll(filepath.Join(dir, fmt.Sprintf("step_%d.parquet", got.Seq)))
		if errors.Is(err, os.ErrNotExist) {
			return got
		}
		require.NoError(t, err)
		for _, row := range rows {
			require.Empty(t, got.Rows[row.ID], "row %s comes twice", row.ID)
			got.Rows[row.ID] = rowDigest(&row)
			if n := len(got.Groups); n == 0 || got.Groups[n-1] != row.Group {
				got.Groups = append(got.Groups, row.Group)
			}
		}
		got.Seq++
	}
}

// The service and its trainer are killed at random, and the trainer still gets the same
// as without kills: each group once, with the same rows. TURNPACK_KILLS is the number of
// kills.
func TestKills(t *testing.T) {
	kills, err := strconv.Atoi(cmp.Or(os.Getenv("TURNPACK_KILLS"), "4"))
	require.NoError(t, err)
	groups, size := 2+kills+kills%2, 4
	_, engine := fakeEngine(t, fakeengine.Options{Faults: fakeengine.Faults{Delay: 4 * time.Millisecond}})
	want := workload(t, t.TempDir(), engine, groups, size, 0, 0)
	require.Len(t, want.Groups, groups)
	require.GreaterOrEqual(t, len(want.Rows), groups*size)
	dir := t.TempDir()
	got := workload(t, dir, engine, groups, size, kills, 0)
	require.ElementsMatch(t, want.Groups, got.Groups)
	require.Equal(t, want.Rows, got.Rows)

	// Step files have the same rows, after as many kills.
	steps := workload(t, t.TempDir(), engine, groups, size, kills, 2)
	require.Equal(t, groups/2, steps.Seq)
	require.ElementsMatch(t, want.Groups, steps.Groups)
	require.Equal(t, want.Rows, steps.Rows)

	// The folder holds the same batches, byte for byte.
	batches, err := stream.Open(filepath.Join(dir, "out"), export.Options{})
	require.NoError(t, err)
	defer batches.Close()
	i := 0
	for b, err := range batches.Batches() {
		require.NoError(t, err)
		text, err := os.ReadFile(batches.Path(b))
		require.NoError(t, err)
		sum := sha256.Sum256(text)
		require.Equal(t, "sha256:"+hex.EncodeToString(sum[:]), b.Digest)
		arrow := sha256.New()
		require.NoError(t, batches.WriteArrow(arrow, b.Seq))
		require.Equal(t, hex.EncodeToString(arrow.Sum(nil)), got.Digests[i])
		i++
	}
	require.Equal(t, groups, i)
}
