package lossmask

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/turnpack/turnpack/rollout"
)

// Explain writes one line per token: position, id, spelling, source message, turn, weight and
// flags. token returns a token's spelling; nil leaves it out.
func Explain(w io.Writer, seq *rollout.Sequence, token func(rollout.TokenID) string) error {
	if seq == nil {
		return rollout.Errorf(rollout.KindInput, rollout.Where{}, "the sequence is nil").WithFix("leave it out")
	}
	if err := columns(seq); err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	line := func(format string, args ...any) {
		out.WriteString(strings.TrimRight(fmt.Sprintf(format, args...), " ") + "\n")
	}
	line("%5s %7s  %-20s %8s %5s %7s  %s", "pos", "id", "token", "source", "turn", "weight", "flags")
	for i, id := range seq.IDs {
		spelling := ""
		if token != nil {
			spelling = strconv.Quote(token(id))
			spelling = clip(spelling[1:len(spelling)-1], 20)
		}
		weight := "-"
		if i < len(seq.Weight) {
			weight = strconv.FormatFloat(float64(seq.Weight[i]), 'g', 4, 32)
		}
		line("%5d %7d  %-20s %8s %5s %7s  %s", i, id, spelling,
			index(seq.Source[i], "scaffold"), index(seq.Turn[i], "-"), weight, strings.Join(seq.Flags[i].Names(), ","))
	}
	return out.Flush()
}

func index(i int32, none string) string {
	if i < 0 {
		return none
	}
	return strconv.Itoa(int(i))
}

func clip(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}
