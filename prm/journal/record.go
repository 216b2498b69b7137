package journal

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash/crc32"
	"strings"

	"github.com/turnpack/turnpack/internal/jsonscan"
)

// Key identifies a vote and everything its text depends on.
type Key struct {
	Rollout string `json:"rollout"`
	Step    int    `json:"step"`
	Vote    int    `json:"vote"`
	// Prompt is a digest of the prompt, the judge and its sampling: a vote on another prompt has
	// another key.
	Prompt string `json:"prompt"`
}

// Record is one vote in the journal. The score is not stored but parsed from the text again, so that a
// better rule needs no new votes.
type Record struct {
	Key
	Seed         int64  `json:"seed"`
	Text         string `json:"text"`
	FinishReason string `json:"finish_reason,omitempty"`
	// Error is the reason why there is no text. Such a vote is requested again on resume.
	Error            string `json:"error,omitempty"`
	Millis           int64  `json:"latency_ms"`
	PromptTokens     int    `json:"prompt_tokens,omitempty"`
	CompletionTokens int    `json:"completion_tokens,omitempty"`
}

// digest is a key in the index: the first 16 bytes of SHA-256.
type digest [16]byte

// clean returns the key as it is after encoding to JSON and decoding.
func (k Key) clean() Key {
	k.Rollout, k.Prompt = strings.ToValidUTF8(k.Rollout, "\uFFFD"), strings.ToValidUTF8(k.Prompt, "\uFFFD")
	return k
}

func (k Key) digest() digest {
	h := sha256.New()
	var b [8]byte
	for _, s := range []string{k.Rollout, k.Prompt} {
		binary.LittleEndian.PutUint64(b[:], uint64(len(s)))
		h.Write(b[:])
		h.Write([]byte(s))
	}
	for _, v := range []int{k.Step, k.Vote} {
		binary.LittleEndian.PutUint64(b[:], uint64(v))
		h.Write(b[:])
	}
	var d digest
	copy(d[:], h.Sum(nil))
	return d
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

type header struct {
	Format  string `json:"format"`
	Version int    `json:"version"`
}

var fileHeader = header{Format: "turnpack-votes", Version: 1}

// appendLine appends v to dst as one line.
func appendLine(dst []byte, v any) []byte {
	body, _ := jsonscan.Marshal(v) // texts and numbers do not fail to encode
	var sum [4]byte
	binary.BigEndian.PutUint32(sum[:], crc32.Checksum(body, castagnoli))
	dst = hex.AppendEncode(dst, sum[:])
	dst = append(dst, ' ')
	dst = append(dst, body...)
	return append(dst, '\n')
}

const sumLen = 9 // eight digits and a space

// parseLine returns the JSON of a line, given without its line break; nil if the line is not whole.
func parseLine(line []byte) []byte {
	if len(line) < sumLen || line[sumLen-1] != ' ' {
		return nil
	}
	var sum [4]byte
	if _, err := hex.Decode(sum[:], line[:sumLen-1]); err != nil {
		return nil
	}
	body := line[sumLen:]
	if crc32.Checksum(body, castagnoli) != binary.BigEndian.Uint32(sum[:]) {
		return nil
	}
	return body
}
