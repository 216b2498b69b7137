package main

import (
	"bytes"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/examples/turnpack/internal/cli"
)

// The command prints the licences of every module linked into it.
func TestLicences(t *testing.T) {
	var out, errOut bytes.Buffer
	require.Equal(t, exitOK, run(&cli.Program{Ctx: t.Context(), In: strings.NewReader(""), Out: &out, Err: &errOut}, []string{"licences"}), errOut.String())
	require.Contains(t, out.String(), "Apache License")
	require.Contains(t, out.String(), "\nthe Go standard library\n")
	info, ok := debug.ReadBuildInfo()
	require.True(t, ok)
	require.NotEmpty(t, info.Deps)
	own := []string{"github.com/turnpack/turnpack"} // the library and the object-store module
	tests := []string{"github.com/stretchr/testify", "github.com/davecgh/go-spew", "github.com/pmezard/go-difflib", "gopkg.in/yaml.v3", "go.yaml.in/yaml/v3", "github.com/google/go-cmp"}
	for _, m := range info.Deps {
		if !containsAny(m.Path, append(tests, own...)) {
			require.Contains(t, out.String(), "\n"+m.Path+" "+m.Version+"\n", "run make notices")
		}
	}
}

func containsAny(path string, prefixes []string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(path, p) {
			return true
		}
	}
	return false
}
