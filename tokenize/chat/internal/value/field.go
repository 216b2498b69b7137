package value

import "github.com/turnpack/turnpack/tokenize/internal/origin"

// Field is a place in the input.
type Field = origin.Field
