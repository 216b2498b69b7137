package lint

import (
	"context"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack"
	"github.com/turnpack/turnpack/agent"
	"github.com/turnpack/turnpack/ctxwindow"
	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/export/audit"
	"github.com/turnpack/turnpack/export/chats"
	"github.com/turnpack/turnpack/export/megatron"
	"github.com/turnpack/turnpack/export/primerl"
	"github.com/turnpack/turnpack/export/shard"
	"github.com/turnpack/turnpack/export/stream"
	"github.com/turnpack/turnpack/export/target"
	"github.com/turnpack/turnpack/internal/swerl"
	"github.com/turnpack/turnpack/internal/tally"
	"github.com/turnpack/turnpack/lossmask"
	"github.com/turnpack/turnpack/prm"
	"github.com/turnpack/turnpack/prm/journal"
	"github.com/turnpack/turnpack/prm/openai"
	"github.com/turnpack/turnpack/recipe"
	"github.com/turnpack/turnpack/reward"
	"github.com/turnpack/turnpack/reward/detect"
	"github.com/turnpack/turnpack/reward/filter"
	"github.com/turnpack/turnpack/reward/offpolicy"
	"github.com/turnpack/turnpack/reward/overview"
	"github.com/turnpack/turnpack/reward/patch"
	"github.com/turnpack/turnpack/reward/pivot"
	"github.com/turnpack/turnpack/reward/shaping"
	"github.com/turnpack/turnpack/reward/ssr"
	"github.com/turnpack/turnpack/reward/ssr/play"
	"github.com/turnpack/turnpack/reward/swebench"
	"github.com/turnpack/turnpack/reward/weights"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/jsonl"
	"github.com/turnpack/turnpack/rollout/live"
	"github.com/turnpack/turnpack/rollout/live/gate"
	"github.com/turnpack/turnpack/rollout/proxy"
	liveengine "github.com/turnpack/turnpack/rollout/proxy/engine"
	"github.com/turnpack/turnpack/rollout/sandbox"
	"github.com/turnpack/turnpack/rollout/sandbox/container"
	"github.com/turnpack/turnpack/rollout/sandbox/local"
	remote "github.com/turnpack/turnpack/rollout/sandbox/swerl"
	"github.com/turnpack/turnpack/rollout/traj"
	"github.com/turnpack/turnpack/serve"
	"github.com/turnpack/turnpack/tokenize"
	"github.com/turnpack/turnpack/tokenize/certify"
	"github.com/turnpack/turnpack/tokenize/chat"
	"github.com/turnpack/turnpack/tokenize/engine"
	"github.com/turnpack/turnpack/tokenize/exact"
	"github.com/turnpack/turnpack/tokenize/lineage"
	"github.com/turnpack/turnpack/tokenize/parse"
	"github.com/turnpack/turnpack/tokenize/prompt"
)

// zeros are the exported structs of the library with methods.
var zeros = []any{
	&turnpack.Pipeline{},
	&ctxwindow.Compaction{}, &ctxwindow.HeadTail{}, &ctxwindow.None{}, &ctxwindow.History{}, &ctxwindow.Refill{}, &ctxwindow.Report{},
	&ctxwindow.SWERLPolicy{}, &ctxwindow.Session{}, &ctxwindow.Tail{},
	&export.Checker{}, &export.Columns{}, &export.Options{}, &export.Reader{}, &export.RefusedError{}, &export.Writer{},
	&audit.Finding{}, &audit.Report{},
	&megatron.Options{},
	&primerl.Options{},
	&shard.Options{}, &shard.Set{}, &shard.Shard{},
	&chats.Writer{},
	&target.Options{}, &target.Target{},
	&lossmask.Policy{},
	&prm.Aggregate{}, &prm.Builder{}, &prm.Combination{}, &prm.Live{}, &prm.Options{}, &prm.Prompt{}, &prm.Rule{}, &prm.ScoreRange{}, &prm.Scorer{},
	&prm.StepOptions{}, &prm.Tally{}, &prm.View{},
	&journal.Journal{},
	&openai.Client{}, &openai.Options{},
	&recipe.Recipe{},
	&detect.Detector{}, &reward.Estimator{}, &reward.OutcomePolicy{}, &reward.Statistics{}, &reward.TokenEstimator{}, &reward.TokenTable{},
	&filter.Rule{},
	&offpolicy.Correction{}, &offpolicy.Rejection{},
	&patch.Patch{},
	&pivot.Action{}, &pivot.Comparator{}, &pivot.Data{}, &pivot.OutputItem{}, &pivot.Row{}, &pivot.SWE{}, &pivot.Selection{},
	&overview.Batch{}, &tally.Tally{},
	&shaping.OffPolicy{}, &shaping.Overlong{}, &shaping.Report{}, &shaping.Keep{}, &shaping.Rules{}, &shaping.Spending{},
	&ssr.Artifact{}, &ssr.Expectation{}, &ssr.Settings{}, &ssr.State{}, &ssr.Verdict{},
	&play.Bug{}, &play.Options{}, &play.Repository{}, &play.Store{},
	&swebench.Instance{}, &swebench.Lists{}, &swebench.Outcome{}, &swebench.Prediction{}, &swebench.Spec{}, &swebench.Summary{},
	&weights.Aggregation{}, &weights.Totals{},
	&rollout.Columns{}, &rollout.Error{}, &jsonl.Limits{}, &rollout.Part{}, &rollout.PromptIDs{}, &rollout.PromptIndex{},
	&live.Call{}, &live.Journal{}, &live.JournalOptions{}, &live.Options{}, &live.Recorder{}, &live.Session{},
	&stream.Stream{}, &serve.Service{},
	&gate.Gate{}, &gate.Options{},
	&proxy.Handler{}, &proxy.Options{}, &liveengine.Error{}, &liveengine.Options{},
	&agent.Agent{}, &agent.Options{}, &agent.Attempt{}, &agent.Engine{},
	&sandbox.Command{}, &sandbox.Limits{}, &sandbox.Result{},
	&container.Options{}, &local.Options{},
	&remote.ClientOptions{}, &remote.ExecOptions{}, &remote.PoolOptions{},
	&jsonl.Options{}, &rollout.Rollout{}, &rollout.Sequence{}, &rollout.Turn{}, &rollout.Where{},
	&traj.Options{}, &traj.Reader{}, &traj.Rewards{}, &traj.Source{},
	&certify.Certificate{}, &tokenize.Counter{}, &tokenize.Encoder{}, &tokenize.Model{}, &tokenize.Options{}, &tokenize.Report{}, &tokenize.Text{},
	&exact.Prompts{},
	&prompt.Options{}, &prompt.Prompt{}, &prompt.Report{}, &prompt.Sessions{}, &prompt.Tree{},
	&chat.Conversation{}, &chat.Error{}, &chat.FieldSpans{}, &chat.Options{}, &chat.Result{}, &chat.Template{},
	&engine.Encoding{},
	&parse.Options{}, &parse.Parser{}, &parse.Reply{},
	&audit.Drift{}, &lineage.Options{}, &lineage.Report{}, &lineage.Result{}, &lineage.Row{},
	&swerl.Options{},
}

// withMethod matches methods in the golden file of TestAPI.
var withMethod = regexp.MustCompile(`(?m)^(\S+): func \((?:\w+ )?\*?(\w+)\) `)

// zeros contains every struct with a method in the golden file of TestAPI.
func TestZerosAreAll(t *testing.T) {
	golden, err := os.ReadFile(filepath.Join("testdata", "api.txt"))
	require.NoError(t, err)
	has := map[string]bool{}
	for _, zero := range zeros {
		typ := reflect.TypeOf(zero).Elem()
		has[path.Join(".", strings.TrimPrefix(typ.PkgPath(), module))+": type "+typ.Name()+" struct"] = true
	}
	for _, m := range withMethod.FindAllStringSubmatch(string(golden), -1) {
		name := m[1] + ": type " + m[2] + " struct"
		if !strings.Contains("\n"+string(golden), "\n"+name) || m[1] == "tokenize/hf" || m[1] == "export/blobstore" {
			continue // they need cgo, or are in another module with its own test
		}
		require.Contains(t, has, name)
	}
}

// The zero value of every exported struct works or returns an error. Methods are called
// one by one and in sequence.
func TestZeroValues(t *testing.T) {
	for _, zero := range zeros {
		typ := reflect.TypeOf(zero)
		for _, n := range []int{0, 1} {
			all := reflect.New(typ.Elem())
			for i := range typ.NumMethod() {
				alone := reflect.New(typ.Elem())
				calls(t, alone, i, n)
				calls(t, all, i, n)
			}
		}
	}
}

// calls calls method i of v and iterates over its results. Arguments are empty, or slices
// of one zero and the number 1.
func calls(t *testing.T, v reflect.Value, i, n int) {
	t.Helper()
	m := v.Method(i)
	name := fmt.Sprintf("%s.%s, %d", v.Type(), v.Type().Method(i).Name, n)
	defer func() {
		if p := recover(); p != nil {
			t.Errorf("%s: %v", name, p)
		}
	}()
	var in []reflect.Value
	for k := range m.Type().NumIn() {
		in = append(in, argument(m.Type().In(k), n))
	}
	call := m.Call
	if m.Type().IsVariadic() {
		call = m.CallSlice
	}
	for _, out := range call(in) {
		switch {
		case out.Kind() == reflect.Interface && !out.IsNil() && strings.HasPrefix(out.Type().PkgPath(), module): // a Vocab
			for k := range out.Elem().NumMethod() {
				calls(t, out.Elem(), k, n)
			}
		case out.Kind() != reflect.Func || out.IsNil():
		case out.Type().CanSeq():
			for range out.Seq() {
				break
			}
		case out.Type().CanSeq2():
			for range out.Seq2() {
				break
			}
		}
	}
}

// argument returns a valid argument of type typ.
func argument(typ reflect.Type, n int) reflect.Value {
	for _, v := range []any{context.Background(), strings.NewReader(""), io.Discard} {
		if typ.Kind() == reflect.Interface && typ.NumMethod() > 0 && reflect.TypeOf(v).Implements(typ) {
			return reflect.ValueOf(v)
		}
	}
	switch typ.Kind() {
	case reflect.Pointer:
		return reflect.New(typ.Elem())
	case reflect.Func:
		return reflect.MakeFunc(typ, func([]reflect.Value) (out []reflect.Value) {
			for k := range typ.NumOut() {
				out = append(out, reflect.Zero(typ.Out(k)))
			}
			return out
		})
	case reflect.Slice:
		return reflect.MakeSlice(typ, n, n)
	case reflect.Int, reflect.Int32, reflect.Int64:
		return reflect.ValueOf(n).Convert(typ)
	}
	return reflect.Zero(typ)
}
