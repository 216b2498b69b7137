package pivot

// TextCalls returns the calls that WithTextCalls reads from a text.
var TextCalls = textCalls

// Expected returns the call that VerifyRow expects.
func Expected(r Row) (*Call, error) { return r.expected() }

// Ratio is ratio for strings.
func Ratio(a, b string) float64 { return ratio([]rune(a), []rune(b)) }
