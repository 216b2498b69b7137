package shard_test

import (
	"fmt"
	"os"

	"github.com/turnpack/turnpack/export/shard"
)

// A run that stops halfway resumes when it is started again with the same input.
func ExampleCreate() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // an example
	in := rows(12)
	first, err := shard.Create(dir, shard.Options{GroupsPerShard: 4})
	if err != nil {
		panic(err)
	}
	for _, row := range in[:len(in)-1] {
		if err := first.Write(row); err != nil {
			panic(err)
		}
	}
	if err := first.Abort(); err != nil { // or kill -9
		panic(err)
	}

	again, err := shard.Create(dir, shard.Options{GroupsPerShard: 4})
	if err != nil {
		panic(err)
	}
	done := len(again.Shards())
	for _, row := range in {
		if err := again.Write(row); err != nil {
			panic(err)
		}
	}
	err = again.Close()
	fmt.Println(done, "shards were done,", len(again.Manifest().Shards), "are complete,", err, shard.Verify(dir))
	// Output: 2 shards were done, 3 are complete, <nil> <nil>
}
