package pqread

import "strconv"

// Type is the stored type of a column, Type of parquet.thrift.
type Type int

// The stored types.
const (
	Boolean Type = iota
	Int32
	Int64
	Int96
	Float
	Double
	ByteArray
	Fixed
)

var typeNames = [...]string{"BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"}

// String returns the name in the Parquet format.
func (t Type) String() string { return nameOf(typeNames[:], int(t)) }

// A repetition says how often an element occurs, FieldRepetitionType of parquet.thrift.
type repetition int

const (
	required repetition = iota
	optional
	repeated
)

// An encoding is the layout of a page's values, Encoding of parquet.thrift.
type encoding int

const (
	plain                encoding = 0
	plainDictionary      encoding = 2
	rle                  encoding = 3
	deltaBinaryPacked    encoding = 5
	deltaLengthByteArray encoding = 6
	deltaByteArray       encoding = 7
	rleDictionary        encoding = 8
	byteStreamSplit      encoding = 9
)

var encodingNames = [...]string{"PLAIN", "1", "PLAIN_DICTIONARY", "RLE", "BIT_PACKED", "DELTA_BINARY_PACKED", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY", "RLE_DICTIONARY", "BYTE_STREAM_SPLIT"}

// String returns the name in the Parquet format.
func (e encoding) String() string { return nameOf(encodingNames[:], int(e)) }

func nameOf(names []string, i int) string {
	if i < 0 || i >= len(names) {
		return strconv.Itoa(i)
	}
	return names[i]
}

const magic = "PAR1"

// KV is one entry of the file metadata.
type KV struct{ Key, Value string }
