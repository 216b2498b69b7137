package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/turnpack/turnpack/reward/patch"
	"github.com/turnpack/turnpack/reward/ssr"
	"github.com/turnpack/turnpack/rollout"
)

// localEnv is an ssr.Env that runs test script and parser as processes, each
// time in a fresh temporary directory. It runs code that a model wrote: use it
// inside a container or not at all.
type localEnv struct {
	files    patch.Tree
	artifact ssr.Artifact
	shell    []string      // runs a test script, the file is appended
	parser   []string      // runs a parser, the file is appended
	timeout  time.Duration // of one run of the script or the parser
}

func inProcesses(a ssr.Artifact) ssr.Env { return newLocalEnv(repository(), a) }

func newLocalEnv(files patch.Tree, a ssr.Artifact) *localEnv {
	return &localEnv{files: files, artifact: a, shell: []string{"sh"}, parser: []string{"sh"}, timeout: 90 * time.Second}
}

// HasFile looks the path up in the repository.
func (l *localEnv) HasFile(_ context.Context, path string) (bool, error) {
	_, there := l.files[path]
	return there, nil
}

// Run writes the state to disk, runs the script in it, and feeds its output to
// the parser. Exit codes and time-outs are answers; a process that cannot be
// started is an error.
func (l *localEnv) Run(ctx context.Context, state ssr.State) (string, error) {
	tree, err := l.artifact.Tree(l.files, state)
	if errors.Is(err, rollout.KindInput) || errors.Is(err, rollout.KindFormat) {
		return "", nil // a patch that does not apply: no test passes
	}
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "selfplay-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	repo := filepath.Join(dir, "repo")
	if err := tree.WriteDir(repo); err != nil {
		return "", err
	}
	programs := patch.Files(map[string]string{"test_script.sh": l.artifact.TestScript, "test_parser": l.artifact.TestParser})
	if err := programs.WriteDir(dir); err != nil {
		return "", err
	}
	output, err := l.process(ctx, repo, l.shell, filepath.Join(dir, "test_script.sh"), nil)
	if err != nil {
		return "", err
	}
	output, err = l.process(ctx, dir, l.parser, filepath.Join(dir, "test_parser"), output)
	return string(output), err
}

func (l *localEnv) process(ctx context.Context, dir string, command []string, file string, stdin []byte) ([]byte, error) {
	limited, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	cmd := exec.CommandContext(limited, command[0], append(command[1:len(command):len(command)], file)...)
	cmd.Dir, cmd.Stdin = dir, bytes.NewReader(stdin)
	cmd.WaitDelay = time.Second
	output, err := cmd.Output()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited && limited.Err() == nil {
		return nil, fmt.Errorf("run %s: %w", command[0], err)
	}
	return output, nil
}
