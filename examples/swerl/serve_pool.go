package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/turnpack/turnpack/rollout/sandbox/swerl"
)

func servePool(ctx context.Context, args []string, out io.Writer) error {
	perNode, err := strconv.Atoi(cmp.Or(os.Getenv("SWE_MAX_CONTAINERS_PER_NODE"), "15"))
	if err != nil {
		return fmt.Errorf("SWE_MAX_CONTAINERS_PER_NODE: %w", err)
	}
	var o swerl.PoolOptions
	fs := flag.NewFlagSet("swerl serve-pool", flag.ContinueOnError)
	listen := fs.String("listen", cmp.Or(os.Getenv("SWE_ENV_SERVER_HOST"), "127.0.0.1")+":"+cmp.Or(os.Getenv("SWE_ENV_SERVER_PORT"), "18090"), "`address` to serve on")
	nodes := fs.String("nodes", cmp.Or(os.Getenv("SWE_EXEC_SERVER_URLS"), "http://localhost:5000"), "base `URLs` of exec servers, with commas")
	fs.IntVar(&o.PerNode, "per-node", perNode, "containers of a node")
	fs.DurationVar(&o.TTL, "lease-ttl", 10*time.Minute, "`time` without a heartbeat or a request after which a lease ends")
	fs.DurationVar(&o.Health, "health", 30*time.Second, "`time` between health checks of a node")
	fs.StringVar(&o.Name, "name", "", "`name` of this pool among those that share its nodes; the address if empty")
	drain := fs.Duration("drain", time.Minute, "`time` to destroy containers in after SIGTERM")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if fs.NArg() > 0 || o.PerNode < 1 || o.TTL <= 0 || o.Health <= 0 {
		return errors.New("serve-pool takes flags only, with --per-node, --lease-ttl and --health above 0")
	}
	for _, url := range strings.Split(*nodes, ",") {
		if url = strings.TrimSpace(url); url != "" {
			o.Nodes = append(o.Nodes, url)
		}
	}
	o.Name = cmp.Or(o.Name, *listen)
	p, err := swerl.NewPool(ctx, o)
	if err != nil {
		return err
	}
	return serve(ctx, *listen, p, *drain, out)
}
