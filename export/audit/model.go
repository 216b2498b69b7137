package audit

import (
	"slices"
	"strings"

	"github.com/turnpack/turnpack/internal/anyrows"
	"github.com/turnpack/turnpack/internal/col"
	"github.com/turnpack/turnpack/rollout"
)

// model applies the rules that need the tokenizer.
func (a *auditor) model(r *anyrows.Row) {
	m := a.opts.Model
	if size := m.Vocab; size > 0 {
		if t, n := count(len(r.IDs), func(t int) bool { return int(r.IDs[t]) >= size }); n > 0 {
			a.report(r, "outside-vocabulary", col.InputIDs, t, n, "id %d in a vocabulary of %d", r.IDs[t], size)
		}
	}
	headers := a.headers(r)
	a.doubledHeaders(r, headers)
	a.emptyThink(r)
	if r.Mask == nil {
		return
	}
	if a.shiftedTurns(r, headers) {
		return // the header, stop and separator rules would only repeat it
	}
	a.headerTrained(r, headers)
	a.stops(r)
	a.specials(r, headers)
	a.arguments(r)
	a.ending(r)
}

// span is a half-open range of token positions.
type span struct{ from, to int }

// headers returns the assistant headers of a row.
func (a *auditor) headers(r *anyrows.Row) []span {
	var out []span
	for t := 0; t < len(r.IDs); {
		n := 0
		for _, h := range a.opts.Model.Headers {
			if len(h) > n && t+len(h) <= len(r.IDs) && slices.Equal(r.IDs[t:t+len(h)], h) {
				n = len(h)
			}
		}
		if n > 0 {
			out = append(out, span{t, t + n})
			t += n
			continue
		}
		t++
	}
	return out
}

func (a *auditor) doubledHeaders(r *anyrows.Row, headers []span) {
	for i := 1; i < len(headers); i++ {
		if headers[i-1].to == headers[i].from {
			h := headers[i]
			a.report(r, "doubled-header", col.InputIDs, h.from, h.to-h.from, "%q comes twice in a row", a.text(r.IDs[h.from:h.to]))
		}
	}
}

func (a *auditor) text(ids []rollout.TokenID) string {
	if a.opts.Model.Decode == nil {
		return ""
	}
	s, err := a.opts.Model.Decode(ids)
	if err != nil {
		return ""
	}
	return s
}

// emptyThink finds trained <think></think> pairs with only white space between them.
func (a *auditor) emptyThink(r *anyrows.Row) {
	const window = 6 // most tokens that an empty block takes
	for t := range r.IDs {
		if !r.Trained(t) || strings.TrimSpace(a.text(r.IDs[t:t+1])) != "<think>" {
			continue
		}
		for end := t + 2; end <= min(t+window, len(r.IDs)); end++ {
			inner, closed := strings.CutSuffix(strings.TrimRight(a.text(r.IDs[t:end]), " \n"), "</think>")
			if !closed {
				continue
			}
			if body := strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(inner), "<think>")); body == "" && r.Trained(end-1) {
				a.report(r, "empty-think-trained", col.LossMask, t, end-t, "%q is trained", a.text(r.IDs[t:end]))
			}
			break
		}
	}
}

func (a *auditor) stop(id rollout.TokenID) bool { return slices.Contains(a.opts.Model.Stops, id) }

// runs returns the ranges of trained tokens.
func runs(r *anyrows.Row) []span {
	var out []span
	for t := range r.Mask {
		if !r.Trained(t) {
			continue
		}
		if t > 0 && r.Trained(t-1) {
			out[len(out)-1].to = t + 1
			continue
		}
		out = append(out, span{t, t + 1})
	}
	return out
}

// shiftedTurns reports a mask that is shifted by one token against the headers and stop tokens
// in every turn, and returns whether it is.
func (a *auditor) shiftedTurns(r *anyrows.Row, headers []span) bool {
	ends := map[int]bool{}
	for _, h := range headers {
		ends[h.to] = true
	}
	all := runs(r)
	early, late, n := 0, 0, 0
	for _, s := range all {
		if s.to >= len(r.IDs) {
			continue
		}
		n++
		if ends[s.from+1] && a.stop(r.IDs[s.to]) {
			early++
		}
		if ends[s.from-1] && s.to-s.from > 1 && a.stop(r.IDs[s.to-2]) && !a.stop(r.IDs[s.to-1]) {
			late++
		}
	}
	switch {
	case n > 0 && early == n:
		a.report(r, "mask-shifted", col.LossMask, all[0].from, n, "every turn is trained from the last token of its header to the token before its stop token")
	case n > 0 && late == n:
		a.report(r, "mask-shifted", col.LossMask, all[0].from, n, "every turn is trained from its second token to the token after its stop token")
	default:
		return false
	}
	return true
}

func (a *auditor) headerTrained(r *anyrows.Row, headers []span) {
	for _, h := range headers {
		if h.from > 0 && r.Trained(h.from-1) && a.opts.Model.Inside[r.IDs[h.from]] {
			continue // the policy writes this header between parts of its reply
		}
		if t, n := count(h.to-h.from, func(i int) bool { return r.Trained(h.from + i) }); n > 0 {
			a.report(r, "header-trained", col.LossMask, h.from+t, n, "%q is trained", a.text(r.IDs[h.from:h.to]))
		}
	}
}

// stops checks what follows each trained run and each trained stop token.
func (a *auditor) stops(r *anyrows.Row) {
	for _, s := range runs(r) {
		if s.to < len(r.IDs) && a.stop(r.IDs[s.to]) {
			a.report(r, "stop-untrained", col.LossMask, s.to, 1, "%q after the trained tokens %d to %d", a.text(r.IDs[s.to:s.to+1]), s.from, s.to-1)
		}
		for t := s.from; t+1 < s.to; t++ {
			if !a.stop(r.IDs[t]) {
				continue
			}
			end := t + 1
			for end < s.to && strings.TrimSpace(a.text(r.IDs[end:end+1])) == "" && !a.opts.Model.Special[r.IDs[end]] {
				end++
			}
			if end > t+1 {
				a.report(r, "separator-trained", col.LossMask, t+1, end-t-1, "%q after %q is trained", a.text(r.IDs[t+1:end]), a.text(r.IDs[t:t+1]))
			}
		}
	}
}

// specials finds control tokens in text: inside trained runs, and stop tokens in the middle of
// a turn.
func (a *auditor) specials(r *anyrows.Row, headers []span) {
	inHeader := make([]bool, len(r.IDs)+1)
	for _, h := range headers {
		for t := h.from; t < h.to; t++ {
			inHeader[t] = true
		}
	}
	m := a.opts.Model
	for t, id := range r.IDs {
		if !m.Special[id] || inHeader[t] {
			continue
		}
		switch {
		case r.Trained(t) && !a.stop(id) && !m.Inside[id]:
			a.report(r, "special-trained", col.LossMask, t, 1, "%q is trained inside a turn", a.text(r.IDs[t:t+1]))
		case a.stop(id) && t+1 < len(r.IDs) && !a.turnFollows(r, t+1):
			a.report(r, "special-in-content", col.InputIDs, t, 1, "%q is followed by %.40q, which opens no turn", a.text(r.IDs[t:t+1]), a.text(r.IDs[t+1:min(t+9, len(r.IDs))]))
		}
	}
}

// turnFollows reports whether the tokens from t on can follow a stop token: white space, then a
// control token or the end of the row.
func (a *auditor) turnFollows(r *anyrows.Row, t int) bool {
	for ; t < len(r.IDs); t++ {
		if a.opts.Model.Special[r.IDs[t]] {
			return true
		}
		if strings.TrimSpace(a.text(r.IDs[t:t+1])) != "" {
			return false
		}
	}
	return true
}

// ending finds completed rows whose last trained token is not a stop token.
func (a *auditor) ending(r *anyrows.Row) {
	if r.Status != "completed" || len(a.opts.Model.Stops) == 0 || r.Sample != nil && !r.Sample.IsLast {
		return
	}
	all := runs(r)
	if len(all) == 0 {
		return
	}
	last := all[len(all)-1].to - 1
	if last+1 < len(r.IDs) && a.stop(r.IDs[last+1]) {
		return // stop-untrained reports it
	}
	if last < len(r.IDs) && !a.stop(r.IDs[last]) {
		// White space from the template may follow the stop token.
		t := last
		for t > 0 && strings.TrimSpace(a.text(r.IDs[t:t+1])) == "" {
			t--
		}
		if a.stop(r.IDs[t]) {
			return
		}
		a.report(r, "no-stop", col.InputIDs, last, 1, "the last trained token is %q", a.text(r.IDs[last:last+1]))
	}
}
