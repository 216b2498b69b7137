package proxy

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/turnpack/turnpack/rollout/proxy/internal/wire"
)

// bodyTime is how long a request body may take to arrive, so that a client that stalls within one does not
// occupy a place of another.
const bodyTime = 5 * time.Minute

// maxWindow is the maximum window of a zstd body, the minimum that RFC 8878 tells decoders to support.
const maxWindow = 8 << 20

// codings are the supported values of Content-Encoding.
const codings = "zstd, gzip, deflate"

// body reads a whole request of at most MaxBody bytes, both as sent and decompressed.
func (h *Handler) body(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	most := h.opts.MaxBody
	long := &wire.Problem{Status: http.StatusRequestEntityTooLarge, Message: "the body has over " + strconv.FormatInt(most, 10) + " bytes"}
	if r.ContentLength > most {
		return nil, long
	}
	coding := strings.ToLower(strings.TrimSpace(strings.Join(r.Header.Values("Content-Encoding"), ", ")))
	in, err := decode(coding, http.MaxBytesReader(w, r.Body, most))
	var b bytes.Buffer
	if err == nil {
		defer in.Close()
		if n := r.ContentLength; n > 0 {
			b.Grow(int(n) + bytes.MinRead)
		}
		_, err = b.ReadFrom(io.LimitReader(in, most+1))
	}
	var beyond *http.MaxBytesError
	var p *wire.Problem
	switch {
	case errors.As(err, &p):
		w.Header().Set("Accept-Encoding", codings)
		return nil, p
	case errors.As(err, &beyond), int64(b.Len()) > most:
		return nil, long
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, &wire.Problem{Status: http.StatusRequestTimeout, Message: "the body did not come within " + h.bodyTime.String()}
	case err != nil && coding != "":
		return nil, &wire.Problem{Status: http.StatusBadRequest, Message: "the body is no whole " + coding}
	case err != nil:
		return nil, &wire.Problem{Status: http.StatusBadRequest, Message: "the body could not be read to its end"}
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // see limitBodyTime
	return b.Bytes(), nil
}

// limitBodyTime sets the time limit for the body of a request. If the body exceeds it, the answer closes the
// connection. A writer that is not a connection needs no limit, so the error is ignored.
func (h *Handler) limitBodyTime(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(h.bodyTime))
}

// decode returns a reader that decodes a Content-Encoding.
func decode(coding string, in io.ReadCloser) (io.ReadCloser, error) {
	switch coding {
	case "", "identity":
		return in, nil
	case "gzip", "x-gzip":
		return gzip.NewReader(in)
	case "zstd":
		d, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, err
		}
		return d.IOReadCloser(), nil
	case "deflate": // zlib by RFC 9110; some clients send raw deflate
		room := bufio.NewReader(in)
		head, err := room.Peek(2)
		if err == nil && head[0]&0xf == 8 && (int(head[0])<<8|int(head[1]))%31 == 0 {
			return zlib.NewReader(room)
		}
		return flate.NewReader(room), nil
	}
	return nil, &wire.Problem{Status: http.StatusUnsupportedMediaType, Message: "the body is encoded otherwise than " + codings + ", or more than once"}
}
