// Package blobstore copies complete shard folders to object stores, through
// gocloud.dev/blob. The caller opens the bucket, by URL with the driver it
// imports ("file:///dir", "mem://", "s3://bucket", "gs://bucket"), so that no
// driver is linked that is not used.
//
// A single file needs no more than the bucket: export.NewWriter writes to an object, which
// the store shows when it is closed.
package blobstore
