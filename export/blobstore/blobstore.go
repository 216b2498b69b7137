package blobstore

import (
	"context"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"

	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"

	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/export/shard"
	"github.com/turnpack/turnpack/internal/zero"
	"github.com/turnpack/turnpack/rollout"
)

// Writer writes one object. It must not be used concurrently.
type Writer struct {
	*export.Writer
	obj    *blob.Writer
	cancel context.CancelFunc
	key    string
	done   bool
	err    error
}

// Create starts the object key. One that exists is refused unless
// Options.Force is set.
func Create(ctx context.Context, b *blob.Bucket, key string, o export.Options) (*Writer, error) {
	where := rollout.Where{File: key}
	if !o.Force {
		there, err := b.Exists(ctx, key)
		if err != nil {
			return nil, storeError(where, "look up", err)
		}
		if there {
			return nil, rollout.Errorf(rollout.KindInput, where, "the object exists").WithFix("choose another name or set Options.Force")
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	obj, err := b.NewWriter(ctx, key, &blob.WriterOptions{ContentType: "application/vnd.apache.parquet"})
	if err != nil {
		cancel()
		return nil, storeError(where, "write", err)
	}
	w, err := export.NewWriter(obj, o)
	if err != nil {
		cancel()
		_ = obj.Close()
		return nil, err
	}
	return &Writer{Writer: w, obj: obj, cancel: cancel, key: key}, nil
}

// Close ends the file and makes the object visible; after an error nothing is
// stored.
func (w *Writer) Close() error {
	if w.obj == nil {
		return zero.Value("blobstore.Writer", "Create")
	}
	if w.done {
		return w.err
	}
	w.done = true
	defer w.cancel()
	if w.err = w.Writer.Close(); w.err != nil {
		w.cancel() // a store that sees a cancelled context stores nothing
		_ = w.obj.Close()
		return w.err
	}
	if err := w.obj.Close(); err != nil {
		w.err = storeError(rollout.Where{File: w.key}, "store", err)
	}
	return w.err
}

// Abort drops the object; after Close it does nothing.
func (w *Writer) Abort() error {
	if w.obj == nil || w.done {
		return nil
	}
	w.done = true
	w.cancel()
	_ = w.obj.Close()
	return w.Writer.Abort()
}

func storeError(where rollout.Where, what string, err error) error {
	return rollout.Errorf(rollout.KindInput, where, "%s: %w", what, err).WithFix("check the bucket's name, the rights and the connection, then run again")
}

// Open reads the object key; it is fetched in ranges as row groups are asked
// for. ctx is used by every later read.
func Open(ctx context.Context, b *blob.Bucket, key string) (*export.Reader, error) {
	a, err := b.Attributes(ctx, key)
	if err != nil {
		return nil, storeError(rollout.Where{File: key}, "open", err)
	}
	return export.NewReader(&ranges{ctx: ctx, b: b, key: key, size: a.Size}, a.Size)
}

// ranges reads parts of an object.
type ranges struct {
	ctx  context.Context
	b    *blob.Bucket
	key  string
	size int64
}

// ReadAt reads len(p) bytes from offset at on.
func (r *ranges) ReadAt(p []byte, at int64) (int, error) {
	if at < 0 || at > r.size {
		return 0, io.EOF
	}
	n := min(int64(len(p)), r.size-at)
	if n == 0 {
		return 0, io.EOF
	}
	in, err := r.b.NewRangeReader(r.ctx, r.key, at, n, nil)
	if err != nil {
		return 0, err
	}
	got, err := io.ReadFull(in, p[:n])
	if err = errors.Join(err, in.Close()); err == nil && got < len(p) {
		err = io.EOF
	}
	return got, err
}

// Upload copies a complete shard folder under prefix, the manifest last: who
// finds the manifest finds every shard. Objects that are there already with the
// manifest's size are sent again only with force.
func Upload(ctx context.Context, b *blob.Bucket, prefix, dir string, force bool) error {
	if err := shard.Verify(dir); err != nil {
		return err
	}
	m, err := shard.Read(dir)
	if err != nil {
		return err
	}
	manifest := path.Join(prefix, shard.ManifestName)
	if there, err := b.Exists(ctx, manifest); err != nil {
		return storeError(rollout.Where{File: manifest}, "look up", err)
	} else if there && !force {
		return rollout.Errorf(rollout.KindInput, rollout.Where{File: manifest}, "the folder is complete").WithFix("choose another prefix or force it")
	}
	for _, s := range m.Shards {
		key := path.Join(prefix, s.File)
		if a, err := b.Attributes(ctx, key); err == nil && a.Size == s.Bytes && !force {
			continue
		}
		if err := Put(ctx, b, key, filepath.Join(dir, s.File)); err != nil {
			return err
		}
	}
	return Put(ctx, b, manifest, filepath.Join(dir, shard.ManifestName))
}

// Put stores a file as the object key, replacing one that exists.
func Put(ctx context.Context, b *blob.Bucket, key, file string) (err error) {
	f, err := os.Open(file)
	if err != nil {
		return rollout.Errorf(rollout.KindInput, rollout.Where{File: file}, "open: %w", err)
	}
	defer f.Close() //nolint:errcheck // only read
	if err := b.Upload(ctx, key, f, &blob.WriterOptions{ContentType: "application/octet-stream"}); err != nil {
		return storeError(rollout.Where{File: key}, "store", err)
	}
	return nil
}

// Read returns the bytes of the object key, nil when there is none.
func Read(ctx context.Context, b *blob.Bucket, key string) ([]byte, error) {
	text, err := b.ReadAll(ctx, key)
	if gcerrors.Code(err) == gcerrors.NotFound {
		return nil, nil
	}
	if err != nil {
		return nil, storeError(rollout.Where{File: key}, "read", err)
	}
	return text, nil
}

// Size returns the bytes that the object key has, −1 when there is none.
func Size(ctx context.Context, b *blob.Bucket, key string) (int64, error) {
	a, err := b.Attributes(ctx, key)
	if gcerrors.Code(err) == gcerrors.NotFound {
		return -1, nil
	}
	if err != nil {
		return 0, storeError(rollout.Where{File: key}, "look up", err)
	}
	return a.Size, nil
}

// First returns the key of an object below prefix, "" when there is none.
func First(ctx context.Context, b *blob.Bucket, prefix string) (string, error) {
	if prefix != "" {
		prefix += "/"
	}
	o, err := b.List(&blob.ListOptions{Prefix: prefix}).Next(ctx)
	if errors.Is(err, io.EOF) {
		return "", nil
	}
	if err != nil {
		return "", storeError(rollout.Where{File: prefix}, "list", err)
	}
	return o.Key, nil
}
