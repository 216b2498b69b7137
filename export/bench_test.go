package export_test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/apache/arrow/go/v17/parquet"
	"github.com/apache/arrow/go/v17/parquet/compress"
	"github.com/apache/arrow/go/v17/parquet/file"
	"github.com/apache/arrow/go/v17/parquet/schema"

	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/rollout"
)

// batch returns rows like those of a real job: groups of eight rollouts with four rows each,
// every row an extension of the one before, about 8,000 tokens, one token in nine trained. Ids
// follow Zipf's law in recurring phrases; log probabilities are mostly near zero.
func batch(seed uint64, groups int) []rollout.Sample {
	r := rand.New(rand.NewPCG(seed, 9))
	zipf := rand.NewZipf(r, 1.2, 8, 150_000)
	phrases := make([][]int32, 400)
	for i := range phrases {
		phrases[i] = make([]int32, 4+r.IntN(24))
		for j := range phrases[i] {
			phrases[i][j] = int32(zipf.Uint64())
		}
	}
	text := func(dst []int32, n int) []int32 {
		for n > 0 {
			p := phrases[r.IntN(len(phrases))]
			if r.IntN(3) == 0 {
				p = []int32{int32(zipf.Uint64()), int32(zipf.Uint64()), int32(zipf.Uint64())}
			}
			p = p[:min(n, len(p))]
			dst, n = append(dst, p...), n-len(p)
		}
		return dst
	}
	var out []rollout.Sample
	for g := range groups {
		prompt := text(nil, 1500)
		for i := range 8 {
			ids := append([]int32{}, prompt...)
			var rows []rollout.Sample
			adv := float64(i)/4 - 1
			for k := range 4 {
				at := len(ids)
				w := make([]float32, at, at+4000)
				for len(ids) < at+2600 {
					n := 20 + r.IntN(500)
					ids = text(ids, n)
					for range n {
						w = append(w, 1)
					}
					m := 200 + r.IntN(700)
					ids = text(ids, m)
					w = append(w, make([]float32, m)...)
				}
				lp, cr, ver := make([]float32, len(ids)), make([]float32, len(ids)), make([]int32, len(ids))
				for t := range lp {
					ver[t] = -1
					if w[t] > 0 {
						lp[t], cr[t], ver[t] = -float32(r.ExpFloat64()*r.Float64()*0.4), float32(adv), 3
					}
				}
				s := rollout.Sample{RolloutIndex: i, Reward: float64(i % 2), OutcomeReward: float64(i % 2), Advantage: &adv,
					Status: rollout.StatusCompleted, FinishReason: "stop", Temperature: 1}
				s.IDs, s.Weight, s.Logprob, s.Credit, s.Version = append([]int32{}, ids...), w, lp, cr, ver
				s.Identity = rollout.Identity{Group: fmt.Sprintf("task-%d", g), Rollout: fmt.Sprintf("task-%d/%d", g, i), FirstStep: k, LastStep: k}
				rows = append(rows, s)
			}
			out = append(out, rollout.FinishRows(rows)...)
		}
	}
	return out
}

func tokens(rows []rollout.Sample) (n int) {
	for i := range rows {
		n += rows[i].Len()
	}
	return n
}

var threeColumns = &export.Columns{Logprobs: true}

func BenchmarkWrite(b *testing.B) {
	rows := batch(1, 16)
	for _, c := range []struct {
		name string
		o    export.Options
	}{
		{"ids+mask+logprobs/none", export.Options{Columns: threeColumns, ZstdLevel: -1}},
		{"ids+mask+logprobs/zstd", export.Options{Columns: threeColumns}},
		{"all/zstd", export.Options{}},
		{"all/zstd9", export.Options{ZstdLevel: 9}},
	} {
		b.Run(c.name, func(b *testing.B) {
			var size int64
			for b.Loop() {
				w, err := export.NewWriter(io.Discard, c.o)
				if err != nil {
					b.Fatal(err)
				}
				for i := range rows {
					if err := w.Write(rows[i]); err != nil {
						b.Fatal(err)
					}
				}
				if err := w.Close(); err != nil {
					b.Fatal(err)
				}
				size = w.Stats().Bytes
			}
			report(b, rows, size)
		})
	}
}

func report(b *testing.B, rows []rollout.Sample, size int64) {
	n := tokens(rows)
	b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mtok/s")
	b.ReportMetric(float64(size)/float64(n), "B/tok")
}

// BenchmarkBareArrow writes the same three columns with arrow's own file writer, without checks
// and without the other columns.
func BenchmarkBareArrow(b *testing.B) {
	rows := batch(1, 16)
	for _, codec := range []compress.Compression{compress.Codecs.Uncompressed, compress.Codecs.Zstd} {
		b.Run(codec.String(), func(b *testing.B) {
			var out countWriter
			for b.Loop() {
				out = 0
				bareArrow(b, &out, rows, codec)
			}
			report(b, rows, int64(out))
		})
	}
}

type countWriter int64

func (c *countWriter) Write(p []byte) (int, error) {
	*c += countWriter(len(p))
	return len(p), nil
}

func bareArrow(b *testing.B, w io.Writer, rows []rollout.Sample, codec compress.Compression) {
	list := func(name string, t parquet.Type) schema.Node {
		n, err := schema.NewPrimitiveNode("element", parquet.Repetitions.Required, t, -1, -1)
		if err != nil {
			b.Fatal(err)
		}
		l, err := schema.ListOfWithName(name, n, parquet.Repetitions.Optional, -1)
		if err != nil {
			b.Fatal(err)
		}
		return l
	}
	root := schema.MustGroup(schema.NewGroupNode("schema", parquet.Repetitions.Required, schema.FieldList{
		list("input_ids", parquet.Types.Int32), list("loss_mask", parquet.Types.Int32), list("logprobs", parquet.Types.Float)}, -1))
	fw := file.NewParquetWriter(w, root, file.WithWriterProps(parquet.NewWriterProperties(parquet.WithCompression(codec),
		parquet.WithDictionaryDefault(false), parquet.WithDictionaryFor("loss_mask.list.element", true), parquet.WithDataPageSize(8<<20))))
	for at := 0; at < len(rows); at += 64 {
		part := rows[at:min(at+64, len(rows))]
		rg := fw.AppendRowGroup()
		var ids, mask []int32
		var lp []float32
		var def, rep []int16
		for i := range part {
			for t, id := range part[i].IDs {
				ids, mask, lp = append(ids, id), append(mask, int32(part[i].Weight[t])), append(lp, part[i].Logprob[t])
				def = append(def, 2)
				rep = append(rep, 1)
			}
			rep[len(rep)-part[i].Len()] = 0
		}
		next := func() file.ColumnChunkWriter {
			c, err := rg.NextColumn()
			if err != nil {
				b.Fatal(err)
			}
			return c
		}
		for _, v := range [][]int32{ids, mask} {
			if _, err := next().(*file.Int32ColumnChunkWriter).WriteBatch(v, def, rep); err != nil {
				b.Fatal(err)
			}
		}
		if _, err := next().(*file.Float32ColumnChunkWriter).WriteBatch(lp, def, rep); err != nil {
			b.Fatal(err)
		}
		if err := rg.Close(); err != nil {
			b.Fatal(err)
		}
	}
	if err := fw.Close(); err != nil {
		b.Fatal(err)
	}
}

func BenchmarkRead(b *testing.B) {
	rows := batch(1, 16)
	var buf bytes.Buffer
	w, err := export.NewWriter(&buf, export.Options{})
	if err != nil {
		b.Fatal(err)
	}
	for _, s := range rows {
		if err := w.Write(s); err != nil {
			b.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		r, err := export.NewReader(bytes.NewReader(buf.Bytes()), int64(buf.Len()))
		for err == nil {
			_, err = r.Read()
		}
		if err != io.EOF {
			b.Fatal(err)
		}
	}
	report(b, rows, int64(buf.Len()))
}

func benchLevel() int {
	if os.Getenv("TURNPACK_BENCH_ZSTD") != "" {
		return 0
	}
	return -1
}

// TestWriteBenchFile writes the benchmark's rows to TURNPACK_BENCH_FILE for
// internal/oracle/bench_parquet.py, which times pyarrow on them.
func TestWriteBenchFile(t *testing.T) {
	path := os.Getenv("TURNPACK_BENCH_FILE")
	if path == "" {
		t.Skip("SKIPPED: set TURNPACK_BENCH_FILE to write the benchmark's rows there")
	}
	w, err := export.Create(path, export.Options{Force: true, ZstdLevel: benchLevel()})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range batch(1, 16) {
		if err := w.Write(s); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}
