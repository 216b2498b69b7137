package pivot

// Ratio is ratio over texts.
func Ratio(a, b string) float64 { return ratio([]rune(a), []rune(b)) }
