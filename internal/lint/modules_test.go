package lint

import (
	"encoding/json"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// modules are the folders of the other modules in the repository.
var modules = []string{"export/blobstore", "examples/turnpack", "examples/beam", "internal/devtools"}

func inside(dir, folder string) bool { return dir == folder || strings.HasPrefix(dir, folder+"/") }

// goTool runs the go command in the root of the repository.
func goTool(t *testing.T, args ...string) []byte {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Dir = filepath.Join("..", "..")
	out, err := cmd.Output()
	if e, ok := err.(*exec.ExitError); ok {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, e.Stderr)
	}
	require.NoError(t, err)
	return out
}

// requirement is a line of a go.mod.
type requirement struct {
	Path, Version string
	Indirect      bool
}

type goMod struct {
	Require []requirement
	Replace []struct {
		Old, New struct{ Path, Version string }
	}
}

func modFile(t *testing.T, path string) (m goMod) {
	t.Helper()
	require.NoError(t, json.Unmarshal(goTool(t, "mod", "edit", "-json", path), &m))
	return m
}

// A program that imports the pipeline or a judge compiles no cloud SDK, no vendor client
// and nothing of the command.
func TestNoCloud(t *testing.T) {
	heavy := []string{"gocloud.dev", "github.com/aws", "cloud.google.com", "google.golang.org", "github.com/Azure", "github.com/openai",
		"go.opentelemetry.io", "github.com/alecthomas", "github.com/schollz", module + "/export/blobstore", module + "/examples"}
	for _, pkg := range []string{".", "./prm/openai"} {
		deps := strings.Fields(string(goTool(t, "list", "-deps", pkg)))
		require.Contains(t, deps, module+"/rollout")
		for _, dep := range deps {
			if slices.ContainsFunc(heavy, func(p string) bool { return inside(dep, p) }) {
				t.Errorf("%s is made of %s", pkg, dep)
			}
		}
	}
}

// go.mod of the library requires what packages of the library and their tests import, and
// nothing for the command, the object stores or plumb.
func TestRequirements(t *testing.T) {
	used := map[string]bool{}
	_, all := sources(t)
	for _, s := range all {
		if top(s.dir) == "internal" && s.dir != "internal/pqread" && s.dir != "internal/arrowfile" || top(s.dir) == "examples" || slices.ContainsFunc(modules, func(m string) bool { return inside(s.dir, m) }) {
			continue
		}
		for _, p := range imports(s) {
			used[p] = true
		}
	}
	own := modFile(t, "go.mod")
	require.Empty(t, own.Replace, "a go.mod with a replace cannot be installed from")
	seen := 0
	for _, r := range own.Require {
		if r.Indirect {
			continue
		}
		seen++
		found := false
		for p := range used {
			found = found || inside(p, r.Path)
		}
		if !found {
			t.Errorf("go.mod requires %s, which no package of the library imports", r.Path)
		}
	}
	require.NotZero(t, seen)
}

// The modules require each other at the version that go.work replaces, which is the next
// tag, and contain no replace directives.
func TestModuleVersions(t *testing.T) {
	next := map[string]string{}
	var work goMod
	require.NoError(t, json.Unmarshal(goTool(t, "work", "edit", "-json"), &work))
	for _, r := range work.Replace {
		next[r.Old.Path] = r.Old.Version
	}
	require.NotEmpty(t, next)
	for _, dir := range []string{"export/blobstore", "examples/turnpack"} {
		m := modFile(t, dir+"/go.mod")
		require.Empty(t, m.Replace, "%s: go install refuses a go.mod with a replace", dir)
		seen := 0
		for _, r := range m.Require {
			if inside(r.Path, module) {
				seen++
				require.Equal(t, next[r.Path], r.Version, "%s requires %s", dir, r.Path)
			}
		}
		require.NotZero(t, seen, dir)
	}
	require.Len(t, slices.Compact(slices.Sorted(maps.Values(next))), 1, "all modules are tagged at one version")
}
