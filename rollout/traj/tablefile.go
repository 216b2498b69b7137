package traj

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/turnpack/turnpack/internal/arrowfile"
	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/internal/pickle"
	"github.com/turnpack/turnpack/internal/pqread"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj/internal/format/trainers"
	"github.com/turnpack/turnpack/rollout/traj/internal/source"
)

// magicParquet is at the start of every Parquet file.
const magicParquet = "PAR1"

// tableKind returns "Parquet" or "Arrow" by the first bytes of a file on disk, or "".
func tableKind(fr *fileReader) string {
	if fr.Path == "" || fr.Path != fr.Name {
		return ""
	}
	f, err := os.Open(fr.Path)
	if err != nil {
		return "" // reading reports the error
	}
	defer f.Close()
	var head [len(arrowfile.Magic)]byte
	_, err = io.ReadFull(f, head[:])
	switch start := string(head[:]); {
	case err != nil:
		return ""
	case strings.HasPrefix(start, magicParquet):
		return "Parquet"
	case start == arrowfile.Magic || strings.HasPrefix(start, arrowfile.Continuation):
		return "Arrow"
	}
	return ""
}

// tableRows iterates over the rows of a table, each as the JSON object of its columns.
type tableRows interface {
	Next() ([]byte, error)
	Row() int
	Given() (texts []jsonscan.Given, bytes int)
}

func openTable(kind string, file io.ReaderAt, size int64, most int) (tableRows, error) {
	if kind == "Arrow" {
		f, err := arrowfile.Open(file, size)
		if err != nil {
			return nil, err
		}
		return arrowfile.NewRows(f, most)
	}
	f, err := pqread.Open(file, size)
	if err != nil {
		return nil, err
	}
	rows := pqread.NewRows(f, most)
	rows.Give()
	return rows, nil
}

// openFile opens a file on disk.
func openFile(fr *fileReader) (file *os.File, size int64, err error) {
	if file, err = os.Open(fr.Path); err == nil {
		var info os.FileInfo
		if info, err = file.Stat(); err == nil {
			return file, info.Size(), nil
		}
		file.Close()
	}
	return nil, 0, rollout.Errorf(rollout.KindInput, fr.Where, "cannot be read: %w", err)
}

// readTable reads each row of a Parquet or Arrow file as a record.
func readTable(fr *fileReader, kind string) error {
	file, size, err := openFile(fr)
	if err != nil {
		return err
	}
	defer file.Close()
	rows, err := openTable(kind, file, size, fr.r.opt.Limits.ValueBytes)
	if err != nil {
		return notTable(fr, kind, err)
	}
	if kind == "Arrow" { // the other files that save_to_disk of datasets writes hold no rows
		dir := filepath.Dir(fr.Path)
		for _, name := range []string{"state.json", "dataset_info.json", filepath.Join("..", "dataset_dict.json")} {
			fr.Reads(filepath.Join(dir, name))
		}
	}
	var read int64
	return readRows(fr, func() (v source.Value, err error) {
		text, err := rows.Next()
		if err == io.EOF {
			return v, err
		}
		fr.Where = rollout.Where{File: fr.Name, Line: rows.Row()}
		if err != nil {
			return v, notTable(fr, kind, err)
		}
		given, long := rows.Given()
		if read += int64(len(text) + long); read > fr.r.walk.Most(size) {
			return v, rollout.Errorf(rollout.KindLimit, fr.Where, "the rows so far hold %d bytes, the file %d", read, size).
				WithFix("raise Limits.Ratio or Limits.FileBytes if the file is to be trusted")
		}
		return source.Value{Text: text, Line: fr.Where.Line, Ended: true, Given: given}, nil
	})
}

// readRows reads each row from next as a record until next returns io.EOF. The line of a
// record is its row number, from 1. next sets fr.Where.
func readRows(fr *fileReader, next func() (source.Value, error)) error {
	fr.lined, fr.rows = true, true
	for {
		v, err := next()
		if err == io.EOF {
			return fr.finish()
		}
		if err != nil {
			return err
		}
		if skipsPast(fr, v.Line) {
			continue
		}
		if err = fr.Failed(fr.value(v)); errors.Is(err, errIgnored) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// noBatch returns the error of a pickle with nothing to read. If the user did not name the
// file, it is reported as ignored at the end.
func noBatch(fr *fileReader, err error, fix string) error {
	e := rollout.Errorf(rollout.KindFormat, fr.Where, "%w", err).WithFix("%s", fix)
	if fr.source.Named {
		return e
	}
	fr.unrecognized = append(fr.unrecognized, e)
	return nil
}

func notTable(fr *fileReader, kind string, err error) error {
	return rollout.Errorf(rollout.KindFormat, fr.Where, "the "+kind+" file cannot be read: %w", err).WithFix("fetch it again, or write its rows as JSON Lines")
}

// readTorch reads the samples of a slime debug rollout file, a pickle written by
// torch.save, as records. The line of a record is its position, from 1.
func readTorch(fr *fileReader) error {
	if fr.Path != fr.Name || !strings.EqualFold(filepath.Ext(fr.Name), ".pt") {
		return rollout.Errorf(rollout.KindInput, fr.Where, "a .pt file cannot be read from a stream, an archive or a compressed file").WithFix("unpack it, and name the file itself")
	}
	file, bytes, err := openFile(fr)
	if err != nil {
		return err
	}
	defer file.Close()
	v, size, err := pickle.Torch(file, bytes)
	top, _ := v.(map[any]any)
	samples, ok := top["samples"].(*[]any)
	if err == nil && !ok {
		err = errors.New("the file holds no samples of rollouts")
	}
	if err != nil {
		return noBatch(fr, err, "name files of slime's --save-debug-rollout-data")
	}
	left := max(1<<24, 64*size)
	return readSamples(fr, len(*samples), func(b []byte, i int) ([]byte, error) {
		b, err := pickle.AppendJSON(b, (*samples)[i], left)
		left -= len(b)
		return b, err
	})
}

// maxBatch bounds the pickle of a training batch, which is held in memory as a whole.
const maxBatch = 2 << 30

// readSkyRL reads the sequences of a training batch written by SkyRL (dump_data_batch).
func readSkyRL(fr *fileReader) error {
	if fr.Path != fr.Name {
		return rollout.Errorf(rollout.KindInput, fr.Where, "a .pkl file cannot be read from a stream, an archive or a compressed file").WithFix("unpack it, and name the file itself")
	}
	info, err := os.Stat(fr.Path)
	if err == nil && info.Size() > maxBatch {
		return rollout.Errorf(rollout.KindLimit, fr.Where, "the pickle has %d bytes, at most %d are read", info.Size(), maxBatch)
	}
	data, err := os.ReadFile(fr.Path)
	if err != nil {
		return rollout.Errorf(rollout.KindInput, fr.Where, "cannot be read: %w", err)
	}
	v, err := pickle.Load(data)
	var batch *trainers.SkyRLBatch
	if err == nil {
		batch, err = trainers.NewSkyRLBatch(v)
	}
	if err != nil {
		return noBatch(fr, err, "name the global_step_*_training_input.pkl of SkyRL's dumped_data")
	}
	return readSamples(fr, batch.Len(), func(b []byte, i int) ([]byte, error) { return batch.AppendRow(b, i), nil })
}

// readSamples reads n records; appendText appends record i as JSON.
func readSamples(fr *fileReader, n int, appendText func(b []byte, i int) ([]byte, error)) error {
	var text []byte
	line := 0
	return readRows(fr, func() (v source.Value, err error) {
		if line == n {
			return v, io.EOF
		}
		line++
		fr.Where = rollout.Where{File: fr.Name, Line: line}
		if text, err = appendText(text[:0], line-1); err != nil {
			return v, rollout.Errorf(rollout.KindLimit, fr.Where, "%w", err)
		}
		return source.Value{Text: text, Line: line, Ended: true}, nil
	})
}
