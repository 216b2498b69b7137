package blobstore

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
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
			return nil, rollout.Errorf(rollout.KindInput, where, "%w: the object is there", export.ErrExists).WithFix("choose another name or set Options.Force")
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

// Abort drops the object; after Close it does nothing, and a Close after it returns
// export.ErrAborted.
func (w *Writer) Abort() error {
	if w.obj == nil || w.done {
		return nil
	}
	w.done = true
	w.cancel()
	_ = w.obj.Close()
	err := w.Writer.Abort()
	w.err = w.Writer.Close()
	return err
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
// finds the manifest finds every shard of it. After an upload that was cut short the
// same call goes on: objects that hold what the manifest says, by their SHA-256, are
// not sent again, and what another folder's upload left is replaced. A prefix that
// holds a complete set is export.ErrComplete unless force is set; its manifest then
// goes first. Two uploads to one prefix at a time are told: the one that finds the
// other's shards among its own ends with export.ErrOtherRun, without a manifest.
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
		return rollout.Errorf(rollout.KindInput, rollout.Where{File: manifest}, "%w", export.ErrComplete).WithFix("choose another prefix or force it")
	}
	if err := Remove(ctx, b, manifest); err != nil {
		return err
	}
	for _, s := range m.Shards {
		key := path.Join(prefix, s.File)
		there, err := Holds(ctx, b, key, s.Bytes, s.SHA256)
		if err != nil {
			return err
		}
		if there {
			continue
		}
		// Some stores keep an object's digest beside it: what is there goes first, so
		// that the new digest never stands over the old bytes.
		if err := Remove(ctx, b, key); err != nil {
			return err
		}
		if err := Put(ctx, b, key, filepath.Join(dir, filepath.FromSlash(s.File))); err != nil {
			return err
		}
	}
	for _, s := range m.Shards {
		key := path.Join(prefix, s.File)
		if there, err := Holds(ctx, b, key, s.Bytes, s.SHA256); err != nil {
			return err
		} else if !there {
			return rollout.Errorf(rollout.KindInput, rollout.Where{File: key}, "%w: another upload has replaced the object", export.ErrOtherRun).
				WithFix("let one upload at a time write to the prefix, then run this one again")
		}
	}
	return Put(ctx, b, manifest, filepath.Join(dir, shard.ManifestName))
}

// digestKey is the metadata of an object that holds the SHA-256 of its bytes.
const digestKey = "turnpack-sha256"

// Holds says whether the object key is there with the given size and SHA-256, in hex.
// An object that Put did not store is read to tell.
func Holds(ctx context.Context, b *blob.Bucket, key string, size int64, sum string) (bool, error) {
	a, err := b.Attributes(ctx, key)
	if gcerrors.Code(err) == gcerrors.NotFound {
		return false, nil
	}
	if err != nil {
		return false, storeError(rollout.Where{File: key}, "look up", err)
	}
	if a.Size != size {
		return false, nil
	}
	if is, ok := a.Metadata[digestKey]; ok {
		return is == sum, nil
	}
	r, err := b.NewReader(ctx, key, nil)
	if err != nil {
		return false, storeError(rollout.Where{File: key}, "read", err)
	}
	h := sha256.New()
	_, err = io.Copy(h, r)
	if err = errors.Join(err, r.Close()); err != nil {
		return false, storeError(rollout.Where{File: key}, "read", err)
	}
	return hex.EncodeToString(h.Sum(nil)) == sum, nil
}

// Remove removes the object key, if it is there.
func Remove(ctx context.Context, b *blob.Bucket, key string) error {
	if err := b.Delete(ctx, key); err != nil && gcerrors.Code(err) != gcerrors.NotFound {
		return storeError(rollout.Where{File: key}, "remove", err)
	}
	return nil
}

// Put stores a file as the object key, replacing one that exists. Its SHA-256 goes
// into the object's metadata.
func Put(ctx context.Context, b *blob.Bucket, key, file string) (err error) {
	f, err := os.Open(file)
	if err != nil {
		return rollout.Errorf(rollout.KindInput, rollout.Where{File: file}, "open: %w", err)
	}
	defer f.Close() //nolint:errcheck // only read
	h := sha256.New()
	_, err = io.Copy(h, f)
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		return rollout.Errorf(rollout.KindInput, rollout.Where{File: file}, "read: %w", err)
	}
	o := &blob.WriterOptions{ContentType: "application/octet-stream", Metadata: map[string]string{digestKey: hex.EncodeToString(h.Sum(nil))}}
	if err := b.Upload(ctx, key, f, o); err != nil {
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
