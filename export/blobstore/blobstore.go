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
	"github.com/turnpack/turnpack/internal/atomic"
	"github.com/turnpack/turnpack/rollout"
)

func storeError(where rollout.Where, what string, err error) error {
	return rollout.Errorf(rollout.KindInput, where, "%s: %w", what, err).WithFix("check the bucket's name, the rights and the connection, then run again")
}

// Upload copies a complete shard folder to prefix, the manifest last: if the manifest is there,
// all its files are. The same call resumes an interrupted upload: it skips objects whose
// SHA-256 matches the manifest and replaces what another folder's upload left. If prefix holds
// a complete set, Upload returns export.ErrComplete unless force is set, in which case it
// removes the old manifest first. If two uploads write to one prefix at a time, the one that
// finds the other's shards among its own returns export.ErrOtherRun and writes no manifest.
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
	var files []shard.File
	for _, s := range m.Shards {
		files = append(files, s.Files()...)
	}
	for _, f := range files {
		key := path.Join(prefix, f.File)
		there, err := Holds(ctx, b, key, f.Bytes, f.SHA256)
		if err != nil {
			return err
		}
		if there {
			continue
		}
		// Some stores keep an object's digest beside its bytes. Remove the old object first, so
		// that the new digest never describes the old bytes.
		if err := Remove(ctx, b, key); err != nil {
			return err
		}
		if err := Put(ctx, b, key, filepath.Join(dir, filepath.FromSlash(f.File))); err != nil {
			return err
		}
	}
	for _, f := range files {
		key := path.Join(prefix, f.File)
		if there, err := Holds(ctx, b, key, f.Bytes, f.SHA256); err != nil {
			return err
		} else if !there {
			return rollout.Errorf(rollout.KindInput, rollout.Where{File: key}, "%w: another upload has replaced the object", export.ErrOtherRun).
				WithFix("let one upload at a time write to the prefix, then run this one again")
		}
	}
	return Put(ctx, b, manifest, filepath.Join(dir, shard.ManifestName))
}

// digestKey is the key of the object metadata that holds the SHA-256 of the object's bytes.
const digestKey = "turnpack-sha256"

// Holds reports whether the object key exists with the given size and SHA-256 (in hex). It
// reads an object that Put did not store in order to compare.
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

// Remove removes the object key, if it exists.
func Remove(ctx context.Context, b *blob.Bucket, key string) error {
	if err := b.Delete(ctx, key); err != nil && gcerrors.Code(err) != gcerrors.NotFound {
		return storeError(rollout.Where{File: key}, "remove", err)
	}
	return nil
}

// Put stores a file as the object key, replacing an existing object, with its SHA-256 in the
// object's metadata.
func Put(ctx context.Context, b *blob.Bucket, key, file string) (err error) {
	_, sum, err := atomic.Digest(file)
	if err != nil {
		return rollout.Errorf(rollout.KindInput, rollout.Where{File: file}, "read: %w", err)
	}
	f, err := os.Open(file)
	if err != nil {
		return rollout.Errorf(rollout.KindInput, rollout.Where{File: file}, "open: %w", err)
	}
	defer f.Close() //nolint:errcheck // only read
	o := &blob.WriterOptions{ContentType: "application/octet-stream", Metadata: map[string]string{digestKey: sum}}
	if err := b.Upload(ctx, key, f, o); err != nil {
		return storeError(rollout.Where{File: key}, "store", err)
	}
	return nil
}

// Read returns the bytes of the object key, or nil if it does not exist.
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

// First returns the key of an object under prefix, or "" if there is none.
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
