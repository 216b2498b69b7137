package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/turnpack/turnpack/rollout/sandbox"
	"github.com/turnpack/turnpack/rollout/sandbox/container"
	"github.com/turnpack/turnpack/rollout/sandbox/local"
	"github.com/turnpack/turnpack/rollout/sandbox/swerl"
)

// driverFlags select where containers run.
type driverFlags struct {
	name, root, work string
	memory           int64
	processes        int
	noLogin          bool
}

func (d *driverFlags) add(fs *flag.FlagSet) {
	fs.StringVar(&d.name, "driver", "docker", "docker, podman, apptainer, or local: folders and processes of this machine")
	fs.StringVar(&d.root, "root", "", "`folder` of images: with local each is a folder that containers get a copy of, with apptainer a .sif file")
	fs.StringVar(&d.work, "work", "", "with local, `folder` that containers are copied to; ROOT/.containers if empty")
	fs.Int64Var(&d.memory, "memory-mib", 4096, "memory of a container")
	fs.IntVar(&d.processes, "pids", 256, "processes of a container")
	fs.BoolVar(&d.noLogin, "no-login", false, "with local, commands run in bash -c, which reads no profile of the machine")
}

func (d *driverFlags) open() (sandbox.Driver, error) {
	limits := sandbox.Limits{Memory: d.memory << 20, Processes: d.processes}
	if d.name == "local" {
		return local.New(local.Options{Root: d.root, Work: d.work, Limits: limits, NoLogin: d.noLogin})
	}
	return container.New(container.Options{Engine: d.name, Root: d.root, Limits: limits})
}

func serveExec(ctx context.Context, args []string, out io.Writer) error {
	var d driverFlags
	fs := flag.NewFlagSet("swerl serve-exec", flag.ContinueOnError)
	listen := fs.String("listen", "127.0.0.1:5000", "`address` to serve on")
	idle := fs.Duration("idle-ttl", 12*time.Hour, "`time` without a request after which a container is destroyed")
	drain := fs.Duration("drain", time.Minute, "`time` to destroy containers in after SIGTERM")
	d.add(fs)
	if err := fs.Parse(args); err != nil {
		return err
	}
	if fs.NArg() > 0 {
		return errors.New("serve-exec takes flags only")
	}
	driver, err := d.open()
	if err != nil {
		return err
	}
	s, err := swerl.NewExecServer(ctx, swerl.ExecOptions{Driver: driver, Idle: *idle})
	if err != nil {
		return fmt.Errorf("the containers of %s cannot be listed: %w", d.name, err)
	}
	return serve(ctx, *listen, s, *drain, out)
}
