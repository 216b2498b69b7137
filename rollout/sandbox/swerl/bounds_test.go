package swerl_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/sandbox"
	"github.com/turnpack/turnpack/rollout/sandbox/container"
	"github.com/turnpack/turnpack/rollout/sandbox/local"
	"github.com/turnpack/turnpack/rollout/sandbox/swerl"
)

// A negative limit is an error, told under its own field, and does not select the default.
func TestNegativeBoundsAreRefused(t *testing.T) {
	driver, err := local.New(local.Options{Root: t.TempDir()})
	require.NoError(t, err)
	for field, make := range map[string]func() error{
		"EvaluateRetries": func() error {
			_, err := swerl.NewClient(swerl.ClientOptions{URL: "http://x", EvaluateRetries: -1})
			return err
		},
		"TTL": func() error {
			_, err := swerl.NewPool(context.Background(), swerl.PoolOptions{Nodes: []string{"http://127.0.0.1:1"}, TTL: -1})
			return err
		},
		"Idle": func() error {
			_, err := swerl.NewExecServer(context.Background(), swerl.ExecOptions{Driver: driver, Idle: -1})
			return err
		},
		"Limits.Processes": func() error {
			_, err := local.New(local.Options{Root: t.TempDir(), Limits: sandbox.Limits{Processes: -1}})
			return err
		},
		"Limits.Memory": func() error {
			_, err := container.New(container.Options{Limits: sandbox.Limits{Memory: -1}})
			return err
		},
	} {
		err := make()
		require.ErrorIs(t, err, rollout.KindInput)
		require.ErrorContains(t, err, field+": found -1")
	}
}
