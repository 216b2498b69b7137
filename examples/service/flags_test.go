package main

import (
	"flag"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFlagsOfAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.json")
	parse := func(text string, args ...string) (name string, n int, on bool, err error) {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		fs := flag.NewFlagSet("x", flag.ContinueOnError)
		fs.SetOutput(io.Discard)
		fs.StringVar(&name, "name", "default", "")
		fs.IntVar(&n, "n", 1, "")
		fs.BoolVar(&on, "on", false, "")
		err = parseFlags(fs, append(args, "--config", path))
		return name, n, on, err
	}
	name, n, on, err := parse(`{"name": "a \"b\"", "n": 10000000, "on": true}`, "--n", "7")
	require.NoError(t, err)
	require.Equal(t, `a "b"`, name)
	require.Equal(t, 7, n, "the command line wins")
	require.True(t, on)
	_, n, _, err = parse(`{"n": 10000000}`)
	require.NoError(t, err)
	require.Equal(t, 10_000_000, n)
	for text, why := range map[string]string{
		`{"nmae": "a"}`:         "nmae: no such flag",
		`{"name": null}`:        "name: found null, expected a text, a number, true or false",
		`{"name": ["a"]}`:       "name: found [",
		`{"n": 1.5}`:            "n: parse error",
		`{"n": 1, "n": 2}`:      "n: stands there twice",
		`{"n": 1} {"n": 2}`:     "something follows",
		`name: a`:               "no JSON",
		``:                      "empty",
		`{"n": "x", "on": "y"}`: "on: parse error",
	} {
		_, _, _, err := parse(text)
		require.ErrorContains(t, err, why, text)
		require.ErrorContains(t, err, "c.json", text)
	}
	_, _, _, err = parse(`{"config": "other.json"}`)
	require.NoError(t, err, "--config was given")
}
