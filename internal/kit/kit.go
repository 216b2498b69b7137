// Package kit finds the shared conformance material beside a checkout. Tests that need it are
// skipped with a message if it is missing.
package kit

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
)

// Dir returns the path of elem under the shared folder beside the module root. If it does not
// exist, Dir skips the test and names what is missing.
func Dir(t testing.TB, elem ...string) string {
	t.Helper()
	root, err := moduleRoot()
	require.NoError(t, err)
	path := filepath.Join(append([]string{root, "..", "shared"}, elem...)...)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("SKIPPED FOR LACK OF SHARED MATERIAL: %s is not beside the checkout; put the shared folder there to run this test", filepath.Join(elem...))
	}
	return path
}

// OneGoroutine skips a slow test in short runs, such as those under the race detector: it runs on
// one goroutine, so it cannot race, and takes eight times as long there.
func OneGoroutine(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("SKIPPED: it runs on one goroutine; run without -short")
	}
}

// Long skips a long test in short runs: shorter tests run the same goroutines.
func Long(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("SKIPPED: it is long; run without -short")
	}
}

// Qwen3 returns the Qwen3 model folder of the tokenizers kit.
func Qwen3(t testing.TB) fstest.MapFS {
	t.Helper()
	config, err := os.ReadFile(Dir(t, "conformance", "tokenizers", "qwen3.tokenizer_config.json"))
	require.NoError(t, err)
	return fstest.MapFS{"tokenizer.json": {Data: Tokenizer(t, "qwen3")}, "tokenizer_config.json": {Data: config}}
}

// Tokenizer returns the tokenizer.json of a tokenizer that the kit stores or that was fetched.
func Tokenizer(t testing.TB, name string) []byte {
	t.Helper()
	plain := filepath.Join(Dir(t, "conformance", "tokenizers"), name+".tokenizer.json")
	packed, err := os.ReadFile(plain + ".zst")
	if err == nil {
		z, err := zstd.NewReader(nil)
		require.NoError(t, err)
		defer z.Close()
		definition, err := z.DecodeAll(packed, nil)
		require.NoError(t, err)
		return definition
	}
	for _, path := range []string{plain, filepath.Join(Fetched(t), name, "tokenizer.json")} {
		if definition, err := os.ReadFile(path); err == nil {
			return definition
		}
	}
	t.Skipf("SKIPPED FOR LACK OF A TOKENIZER: %s is not there; run internal/oracle/tokenizers.sh to fetch it", name)
	return nil
}

// Fetched returns the folder of the tokenizers that the kit only names:
// internal/oracle/tokenizers.sh puts them there.
func Fetched(t testing.TB) string { return filepath.Join(cache(t), "tokenizers-kit") }

func cache(t testing.TB) string {
	t.Helper()
	dir, err := os.UserCacheDir()
	require.NoError(t, err)
	return filepath.Join(dir, "turnpack")
}

// Templates returns the folder of the templates kit's template texts. They come from a package
// registry, not with the kit: internal/oracle/templates.sh puts them there.
func Templates(t testing.TB) string {
	t.Helper()
	dir := os.Getenv("TURNPACK_TEMPLATES")
	if dir == "" {
		dir = filepath.Join(cache(t), "templates-kit")
	}
	if found, _ := filepath.Glob(filepath.Join(dir, "*.jinja")); len(found) == 0 {
		t.Skip("SKIPPED FOR LACK OF TEMPLATES: run internal/oracle/templates.sh, or name a folder of templates in TURNPACK_TEMPLATES")
	}
	return dir
}

func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		// Nested modules are not the root.
		if mod, err := os.ReadFile(filepath.Join(dir, "go.mod")); err == nil && strings.HasPrefix(string(mod), "module github.com/turnpack/turnpack\n") {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", os.ErrNotExist
		}
		dir = up
	}
}
