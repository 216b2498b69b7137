package blobstore_test

import (
	"context"
	"fmt"
	"os"

	"gocloud.dev/blob"

	"github.com/turnpack/turnpack/export/blobstore"
	"github.com/turnpack/turnpack/export/shard"
)

func ExampleUpload() {
	ctx := context.Background()
	bucket, err := blob.OpenBucket(ctx, "mem://") // "s3://bucket" with its driver imported
	if err != nil {
		panic(err)
	}
	defer bucket.Close() //nolint:errcheck // an example
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // an example
	set, err := shard.Create(dir, shard.Options{})
	if err != nil {
		panic(err)
	}
	for _, row := range rows(3) {
		if err := set.Write(row); err != nil {
			panic(err)
		}
	}
	if err := set.Close(); err != nil {
		panic(err)
	}
	if err := blobstore.Upload(ctx, bucket, "run-1", dir, false); err != nil {
		panic(err)
	}
	there, err := bucket.Exists(ctx, "run-1/"+shard.ManifestName)
	fmt.Println(there, err)
	// Output: true <nil>
}
