// Package place publishes batches to folders and object stores.
package place

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"gocloud.dev/blob"
	_ "gocloud.dev/blob/s3blob" // s3://, and with endpoint=… any S3-compatible store

	"github.com/turnpack/turnpack/examples/turnpack/internal/cli"
	"github.com/turnpack/turnpack/export/blobstore"
	"github.com/turnpack/turnpack/export/shard"
	"github.com/turnpack/turnpack/internal/atomic"
	"github.com/turnpack/turnpack/rollout"
)

// Place is the destination of a batch.
type Place interface {
	// Dir returns the local folder that the run writes to.
	Dir() string
	// Read returns a file of the place, or nil if there is none.
	Read(name string) ([]byte, error)
	// Holds reports whether the file exists unchanged.
	Holds(f shard.File) (bool, error)
	// Remove removes a file of the place, and folders that become empty.
	Remove(name string) error
	// Vacant returns an error if the place holds files but no record, unless Publish was cut off
	// there with the same marker.
	Vacant(marker string) error
	// Publish copies the files of Dir to the place, the record last. The file marker is there
	// meanwhile.
	Publish(files []string, marker string) error
	Close() error
	// Join returns the name of a file of the place, or of the place if name is "".
	Join(name string) string
	String() string
}

// Digest returns size and SHA-256 of the named file in dir.
func Digest(dir, name string) (shard.File, error) {
	n, sum, err := atomic.Digest(filepath.Join(dir, filepath.FromSlash(name)))
	return shard.File{File: name, Bytes: n, SHA256: sum}, err
}

// Open returns the place that --out names: a folder or the URL of an object store.
func Open(ctx context.Context, out string, errOut io.Writer) (Place, error) {
	if !strings.Contains(out, "://") {
		return folder(out), nil
	}
	where := rollout.Where{Field: "--out"}
	u, err := url.Parse(out)
	if err != nil {
		return nil, rollout.Errorf(rollout.KindInput, where, "%q is no URL: %w", out, err)
	}
	if u.Scheme != "s3" {
		return nil, rollout.Errorf(rollout.KindInput, where, "%q names a store of kind %s, this command writes to folders and s3://", out, u.Scheme).
			WithFix("write to a folder and copy that, name a store that speaks S3 by its endpoint (s3://BUCKET/PREFIX?endpoint=HOST), or write from Go through export/blobstore")
	}
	bucket := *u
	bucket.Path = ""
	if q := bucket.Query(); !q.Has(checksums) {
		q.Set(checksums, "when_required") // S3-compatible stores need not return a checksum
		bucket.RawQuery = q.Encode()
	}
	b, err := blob.OpenBucket(ctx, bucket.String())
	if err != nil {
		return nil, rollout.Errorf(rollout.KindInput, where, "the bucket of %q cannot be opened: %w", out, err).WithFix("check its name and the credentials in the environment")
	}
	stage, left, err := atomic.TempFolder("", "turnpack-batch-")
	cli.Swept(errOut, os.TempDir(), left)
	if err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return &bucketPlace{ctx: ctx, bucket: b, prefix: strings.Trim(u.Path, "/"), stage: stage, name: "s3://" + path.Join(u.Host, u.Path)}, nil
}

const checksums = "response_checksum_validation"

// folder is a place on the local disk.
type folder string

func (f folder) Dir() string                    { return string(f) }
func (f folder) String() string                 { return string(f) }
func (f folder) Join(name string) string        { return filepath.Join(string(f), name) }
func (f folder) Publish([]string, string) error { return nil }
func (f folder) Close() error                   { return nil }
func (f folder) Vacant(string) error            { return nil } // each writer checks which files it may continue

func (f folder) Read(name string) ([]byte, error) {
	if info, err := os.Stat(string(f)); err != nil || !info.IsDir() {
		return nil, nil // MakeFolder reports it if the folder cannot be made
	}
	text, err := os.ReadFile(filepath.Join(string(f), name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return text, err
}

func (f folder) Holds(made shard.File) (bool, error) {
	is, err := Digest(string(f), made.File)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return is == made, err
}

func (f folder) Remove(name string) error {
	err := os.Remove(f.Join(name))
	for up := filepath.Dir(name); err == nil && up != "." && os.Remove(f.Join(up)) == nil; up = filepath.Dir(up) {
	}
	return err
}

// bucketPlace is a prefix in an object store. Files are written locally and uploaded when
// all are complete, the record last, so that a batch with a record has all its files.
type bucketPlace struct {
	ctx    context.Context
	bucket *blob.Bucket
	prefix string
	stage  *atomic.Folder
	name   string
}

func (b *bucketPlace) Dir() string             { return filepath.Join(b.stage.Path, "batch") }
func (b *bucketPlace) String() string          { return b.name }
func (b *bucketPlace) Join(name string) string { return b.name + strings.TrimSuffix("/"+name, "/") }
func (b *bucketPlace) Close() error            { return errors.Join(b.stage.Remove(), b.bucket.Close()) }

func (b *bucketPlace) Read(name string) ([]byte, error) {
	return blobstore.Read(b.ctx, b.bucket, path.Join(b.prefix, name))
}

func (b *bucketPlace) Vacant(marker string) error {
	key, err := blobstore.First(b.ctx, b.bucket, b.prefix)
	if err != nil || key == "" {
		return err
	}
	if begun, err := b.Read(marker); err != nil || begun != nil {
		return err
	}
	return rollout.Errorf(rollout.KindInput, rollout.Where{File: b.name}, "%s is there and no complete run made it", key).
		WithFix("choose another --out, or write over it with --force")
}

func (b *bucketPlace) Holds(made shard.File) (bool, error) {
	return blobstore.Holds(b.ctx, b.bucket, path.Join(b.prefix, made.File), made.Bytes, made.SHA256)
}

func (b *bucketPlace) Remove(name string) error {
	return blobstore.Remove(b.ctx, b.bucket, path.Join(b.prefix, name))
}

func (b *bucketPlace) Publish(files []string, marker string) error {
	err := atomic.WriteFile(filepath.Join(b.Dir(), marker), []byte(b.name), true)
	for _, name := range slices.Concat([]string{marker}, files, []string{cli.RecordName}) {
		if err == nil {
			err = blobstore.Put(b.ctx, b.bucket, path.Join(b.prefix, name), filepath.Join(b.Dir(), filepath.FromSlash(name)))
		}
	}
	if err != nil {
		return err
	}
	return b.Remove(marker)
}

// MakeFolder creates dir and its parents. undo removes those it created that are empty
// again.
func MakeFolder(dir string) (undo func(), err error) {
	var made []string
	for d := filepath.Clean(dir); ; d = filepath.Dir(d) {
		if _, err := os.Lstat(d); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		made = append(made, d)
	}
	undo = func() {
		for _, d := range made {
			if os.Remove(d) != nil {
				return
			}
		}
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return undo, rollout.Errorf(rollout.KindInput, rollout.Where{File: dir}, "the output folder cannot be made: %w", err).WithFix("choose another --out, or make the folder above it writable")
	}
	return undo, nil
}
