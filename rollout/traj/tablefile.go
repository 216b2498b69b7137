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

// magicParquet begins every Parquet file.
const magicParquet = "PAR1"

// tableKind looks at the first bytes of a file on disk: "Parquet", "Arrow" or neither.
func tableKind(fr *fileReader) string {
	if fr.Path == "" || fr.Path != fr.Name {
		return ""
	}
	f, err := os.Open(fr.Path)
	if err != nil {
		return "" // said when it is read
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

// tableRows are the rows of a table, each the JSON object of its columns.
type tableRows interface {
	Next() ([]byte, error)
	Row() int
	Given() (texts []jsonscan.Away, bytes int)
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

// readTable reads each row of a Parquet or Arrow file as a record: the object of its
// columns. The line of a record is its row, from 1.
func readTable(fr *fileReader, kind string) error {
	file, err := os.Open(fr.Path)
	if err != nil {
		return rollout.Errorf(rollout.KindInput, fr.Where, "cannot be read: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return rollout.Errorf(rollout.KindInput, fr.Where, "cannot be read: %w", err)
	}
	rows, err := openTable(kind, file, info.Size(), fr.r.opt.Limits.ValueBytes)
	if err != nil {
		return notTable(fr, kind, err)
	}
	if kind == "Arrow" { // what save_to_disk of datasets writes besides holds no rows
		dir := filepath.Dir(fr.Path)
		for _, name := range []string{"state.json", "dataset_info.json", filepath.Join("..", "dataset_dict.json")} {
			fr.Reads(filepath.Join(dir, name))
		}
	}
	fr.lined, fr.rows = true, true
	var read int64
	for {
		text, err := rows.Next()
		if err == io.EOF {
			return fr.finish()
		}
		fr.Where = rollout.Where{File: fr.Name, Line: rows.Row()}
		if err != nil {
			return notTable(fr, kind, err)
		}
		given, long := rows.Given()
		if read += int64(len(text) + long); read > fr.r.walk.Most(info.Size()) {
			return rollout.Errorf(rollout.KindLimit, fr.Where, "the rows so far hold %d bytes, the file %d", read, info.Size()).
				WithFix("raise Limits.Ratio or Limits.FileBytes if the file is to be trusted")
		}
		if skipsPast(fr, fr.Where.Line) {
			continue
		}
		if err = fr.value(source.Value{Text: text, Line: fr.Where.Line, Ended: true, Away: given}); errors.Is(err, errIgnored) {
			return nil
		} else if err != nil {
			if err = fr.Failed(err); err != nil {
				return err
			}
		}
	}
}

func notTable(fr *fileReader, kind string, err error) error {
	return rollout.Errorf(rollout.KindFormat, fr.Where, "the "+kind+" file cannot be read: %w", err).WithFix("fetch it again, or write its rows as JSON Lines")
}

// readTorch reads the samples of a debug rollout file of slime, a pickle of torch.save,
// as records. The line of a record is its place among them, from 1.
func readTorch(fr *fileReader) error {
	if fr.Path != fr.Name || !strings.EqualFold(filepath.Ext(fr.Name), ".pt") {
		return rollout.Errorf(rollout.KindInput, fr.Where, "a .pt file cannot be read from a stream, an archive or a compressed file").WithFix("unpack it, and name the file itself")
	}
	file, err := os.Open(fr.Path)
	if err != nil {
		return rollout.Errorf(rollout.KindInput, fr.Where, "cannot be read: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return rollout.Errorf(rollout.KindInput, fr.Where, "cannot be read: %w", err)
	}
	v, size, err := pickle.Torch(file, info.Size())
	top, _ := v.(map[any]any)
	samples, ok := top["samples"].(*[]any)
	if err != nil || !ok {
		e := rollout.Errorf(rollout.KindFormat, fr.Where, "the file holds no samples of rollouts").WithFix("name files of slime's --save-debug-rollout-data")
		if err != nil {
			e = rollout.Errorf(rollout.KindFormat, fr.Where, "%w", err).WithFix("name files of slime's --save-debug-rollout-data")
		}
		if fr.source.Named {
			return e
		}
		fr.unrecognized = append(fr.unrecognized, e)
		return nil
	}
	left := max(1<<24, 64*size)
	return readSamples(fr, len(*samples), func(b []byte, i int) ([]byte, error) {
		b, err := pickle.AppendJSON(b, (*samples)[i], left)
		left -= len(b)
		return b, err
	})
}

// maxBatch bounds the pickle of a training batch, which is in memory whole.
const maxBatch = 2 << 30

// readSkyRL reads the sequences of a training batch that SkyRL wrote (dump_data_batch).
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
		e := rollout.Errorf(rollout.KindFormat, fr.Where, "%w", err).WithFix("name the global_step_*_training_input.pkl of SkyRL's dumped_data")
		if fr.source.Named {
			return e
		}
		fr.unrecognized = append(fr.unrecognized, e)
		return nil
	}
	return readSamples(fr, batch.Len(), func(b []byte, i int) ([]byte, error) { return batch.AppendRow(b, i), nil })
}

// readSamples reads n records, which text writes as JSON.
func readSamples(fr *fileReader, n int, appendText func(b []byte, i int) ([]byte, error)) error {
	fr.lined, fr.rows = true, true
	var text []byte
	for i := range n {
		fr.Where = rollout.Where{File: fr.Name, Line: i + 1}
		var err error
		if text, err = appendText(text[:0], i); err != nil {
			return rollout.Errorf(rollout.KindLimit, fr.Where, "%w", err)
		}
		if skipsPast(fr, i+1) {
			continue
		}
		if err := fr.value(source.Value{Text: text, Line: i + 1, Ended: true}); errors.Is(err, errIgnored) {
			return nil
		} else if err != nil {
			if err = fr.Failed(err); err != nil {
				return err
			}
		}
	}
	return fr.finish()
}
