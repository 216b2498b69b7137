package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"

	"gocloud.dev/blob"
	"gocloud.dev/blob/fileblob"
	_ "gocloud.dev/blob/gcsblob" // gs://
	_ "gocloud.dev/blob/s3blob"  // s3://, with endpoint=… any store that speaks S3

	"github.com/turnpack/turnpack/export/blobstore"
	"github.com/turnpack/turnpack/export/shard"
)

// reportName is the file beside the manifest that says what was left out.
const reportName = "report.json"

// openPlace opens a folder, or the folder of an object store that a URL names.
func openPlace(ctx context.Context, place string) (b *blob.Bucket, prefix string, err error) {
	if !strings.Contains(place, "://") {
		b, err = fileblob.OpenBucket(place, &fileblob.Options{CreateDir: true, NoTempDir: true, Metadata: fileblob.MetadataDontWrite})
		return b, "", err
	}
	u, err := url.Parse(place)
	if err != nil {
		return nil, "", err
	}
	bucket := *u
	bucket.Path = ""
	if u.Scheme == "file" { // the bucket is the folder
		bucket.Path, u.Path = u.Path, ""
	}
	b, err = blob.OpenBucket(ctx, bucket.String())
	return b, strings.Trim(u.Path, "/"), err
}

// fetch copies dumps from object stores to a folder of this machine, where clean
// removes them; paths stay as they are.
func fetch(ctx context.Context, in []string) (paths []string, clean func(), err error) {
	clean = func() {}
	for i, place := range in {
		if !strings.Contains(place, "://") {
			paths = append(paths, place)
			continue
		}
		dir, err := os.MkdirTemp("", "turnpack-dumps-")
		if err != nil {
			return nil, clean, err
		}
		before := clean
		clean = func() { before(); os.RemoveAll(dir) }
		to := filepath.Join(dir, fmt.Sprint(i))
		if err := download(ctx, place, to); err != nil {
			return nil, clean, fmt.Errorf("%s: %w", place, err)
		}
		paths = append(paths, to)
	}
	return paths, clean, nil
}

func download(ctx context.Context, place, dir string) error {
	b, prefix, err := openPlace(ctx, place)
	if err != nil {
		return err
	}
	defer b.Close()
	if prefix != "" {
		prefix += "/"
	}
	for list := b.List(&blob.ListOptions{Prefix: prefix}); ; {
		o, err := list.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		rel := filepath.FromSlash(strings.TrimPrefix(o.Key, prefix))
		if strings.HasSuffix(o.Key, "/") {
			continue // a folder that some stores list
		}
		if !filepath.IsLocal(rel) {
			return fmt.Errorf("%q is no file name", o.Key)
		}
		to := filepath.Join(dir, rel)
		if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
			return err
		}
		f, err := os.Create(to)
		if err != nil {
			return err
		}
		if err := errors.Join(b.Download(ctx, o.Key, f, nil), f.Close()); err != nil {
			return err
		}
	}
}

// put stores a file of this machine as a file of place, whole or not at all.
func put(ctx context.Context, place, name, file string) error {
	b, prefix, err := openPlace(ctx, place)
	if err != nil {
		return err
	}
	return errors.Join(blobstore.Put(ctx, b, path.Join(prefix, name), file), b.Close())
}

func putJSON(ctx context.Context, place, name string, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	b, prefix, err := openPlace(ctx, place)
	if err != nil {
		return err
	}
	return errors.Join(b.WriteAll(ctx, path.Join(prefix, name), append(text, '\n'), nil), b.Close())
}

// vacant refuses a place that holds files. force removes the manifest, so that nobody
// takes a half-written set for the old one, and then the shards that it names: readers
// of the whole folder would take those that the new set has not.
func vacant(ctx context.Context, place string, force bool) error {
	b, prefix, err := openPlace(ctx, place)
	if err != nil {
		return err
	}
	defer b.Close()
	if force {
		text, err := blobstore.Read(ctx, b, path.Join(prefix, shard.ManifestName))
		if err != nil || text == nil {
			return err
		}
		var old shard.Manifest
		_ = json.Unmarshal(text, &old) // one that is damaged names no shard
		err = blobstore.Remove(ctx, b, path.Join(prefix, shard.ManifestName))
		for _, s := range old.Shards {
			for _, f := range s.Files() {
				if err == nil && filepath.IsLocal(filepath.FromSlash(f.File)) {
					err = blobstore.Remove(ctx, b, path.Join(prefix, f.File))
				}
			}
		}
		return err
	}
	key, err := blobstore.First(ctx, b, prefix)
	if err == nil && key != "" {
		err = fmt.Errorf("%s holds %s: choose another -out, or write over it with -force", place, key)
	}
	return err
}

// report is what the job tells at its end.
type report struct {
	Read    int            `json:"read"`
	Rows    int            `json:"rows"`
	LeftOut int            `json:"left_out"`
	Errors  []string       `json:"errors"`
	Without map[string]int `json:"without_rows"`
}

func (f *fact) report() report { return report{f.Read, f.Rows, f.LeftOut, f.Errors, f.Without} }

func readReport(ctx context.Context, place string) (r report, err error) {
	b, prefix, err := openPlace(ctx, place)
	if err != nil {
		return r, err
	}
	defer b.Close()
	text, err := b.ReadAll(ctx, path.Join(prefix, reportName))
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal(text, &r)
}
