// Package blobstore copies complete shard folders to object stores, through gocloud.dev/blob.
// The caller opens the bucket by URL, with a driver that it imports ("file:///dir", "mem://",
// "s3://bucket", "gs://bucket"), so that only the drivers in use are linked.
//
// A single file needs only the bucket: export.NewWriter can write to an object, which the store
// shows once it is closed.
package blobstore
