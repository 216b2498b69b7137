package export

import (
	"bytes"
	"encoding/base64"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/ipc"

	"github.com/turnpack/turnpack/export/internal/pq"
	"github.com/turnpack/turnpack/internal/arrowfile"
	"github.com/turnpack/turnpack/internal/pqread"
	"github.com/turnpack/turnpack/rollout"
)

// Keys of the column metadata.
const (
	fieldUnit = "turnpack.unit"
	fieldDoc  = "turnpack.doc"
)

// arrowSchema returns the Arrow schema of cols, with the file metadata kv and each column's
// unit and meaning in its field metadata.
func arrowSchema(cols []column, kv []pqread.KV) *arrow.Schema {
	var fields []arrow.Field
	for _, c := range cols {
		t := arrowType(c.Kind)
		if c.List {
			t = arrow.ListOfField(arrow.Field{Name: "element", Type: t})
		}
		fields = append(fields, arrow.Field{Name: c.Name, Type: t, Nullable: c.Nullable,
			Metadata: arrow.NewMetadata([]string{fieldUnit, fieldDoc}, []string{c.unit, c.doc})})
	}
	var keys, values []string
	for _, e := range kv {
		keys, values = append(keys, e.Key), append(values, e.Value)
	}
	meta := arrow.NewMetadata(keys, values)
	return arrow.NewSchema(fields, &meta)
}

func arrowType(k pq.Kind) arrow.DataType {
	switch k {
	case pq.Bool:
		return arrow.FixedWidthTypes.Boolean
	case pq.Int8:
		return arrow.PrimitiveTypes.Int8
	case pq.Int32:
		return arrow.PrimitiveTypes.Int32
	case pq.Int64:
		return arrow.PrimitiveTypes.Int64
	case pq.Float32:
		return arrow.PrimitiveTypes.Float32
	}
	return arrow.BinaryTypes.String
}

// arrowSchemaBytes returns the value of the Parquet metadata key ARROW:schema, from which
// readers take the column metadata: the schema message of an IPC stream in base64.
func arrowSchemaBytes(cols []column, kv []pqread.KV) (string, error) {
	var buf bytes.Buffer
	w := ipc.NewWriter(&buf, ipc.WithSchema(arrowSchema(cols, kv)))
	if err := w.Close(); err != nil {
		return "", rollout.Errorf(rollout.KindInternal, rollout.Where{}, "serialise the schema: %v", err)
	}
	return base64.StdEncoding.EncodeToString(bytes.TrimSuffix(buf.Bytes(), []byte(arrowfile.EndOfStream))), nil
}
