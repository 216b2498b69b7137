// Command plumb exposes each verb of the library as a filter over JSON Lines, for tests,
// scripts and other languages: plumb NAME [flags] < in.jsonl > out.jsonl.
package main

import (
	"context"
	"os"

	"github.com/turnpack/turnpack/internal/plumb/verbs"
)

func main() {
	os.Exit(verbs.Main(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
