package arrowfile

// Kind is the value type of a training batch column.
type Kind uint8

// The value types.
const (
	Bool Kind = iota
	Int8
	Int32
	Int64
	Float32
	Text
)

var kindNames = [...]string{"bool", "int8", "int32", "int64", "float32", "text"}

// String returns the name used in error messages.
func (k Kind) String() string { return kindNames[k] }
