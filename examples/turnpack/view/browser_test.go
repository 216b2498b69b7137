package view_test

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/examples/turnpack/view"
	"github.com/turnpack/turnpack/internal/kit"
)

// browser is a headless Chromium driven through a pair of pipes.
type browser struct {
	t       *testing.T
	in      *os.File
	replies chan reply
	next    int
	session string
	events  []string // page errors, and requests to other addresses
}

type reply struct {
	ID     int             `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

// chromium starts the browser, or skips the test if none is installed.
func chromium(t *testing.T, width, height int) *browser {
	t.Helper()
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if p, err := exec.LookPath(name); err == nil {
			path = p
			break
		}
	}
	if path == "" {
		t.Skip("SKIPPED FOR LACK OF A BROWSER: install chromium to run this test")
	}
	profile, err := os.MkdirTemp("", "turnpack-view-")
	require.NoError(t, err)
	fromTest, toBrowser, err := os.Pipe()
	require.NoError(t, err)
	fromBrowser, toTest, err := os.Pipe()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), path, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
		"--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--hide-scrollbars", "--user-data-dir="+profile, fmt.Sprintf("--window-size=%d,%d", width, height), "--remote-debugging-pipe", "about:blank")
	cmd.ExtraFiles = []*os.File{fromTest, toTest}
	require.NoError(t, cmd.Start())
	b := &browser{t: t, in: toBrowser, replies: make(chan reply, 1024)}
	go b.listen(fromBrowser)
	t.Cleanup(func() {
		_ = toBrowser.Close() // the browser exits when its pipe closes
		_ = fromTest.Close()
		_ = toTest.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = fromBrowser.Close()
		for range 20 { // helper processes still write for a moment
			if os.RemoveAll(profile) == nil {
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
	})
	var target struct{ TargetID, SessionID string }
	b.call("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	b.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &target)
	b.session = target.SessionID
	b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false}, nil)
	for _, domain := range []string{"Page", "Runtime", "Network", "Log"} {
		b.call(domain+".enable", nil, nil)
	}
	return b
}

func (b *browser) listen(f *os.File) {
	defer close(b.replies)
	r := bufio.NewReaderSize(f, 1<<20)
	for {
		text, err := r.ReadBytes(0)
		if err != nil {
			return
		}
		var m reply
		if json.Unmarshal(bytes.TrimSuffix(text, []byte{0}), &m) == nil {
			b.replies <- m
		}
	}
}

// call sends a command and waits for its reply. It keeps events that arrive before.
func (b *browser) call(method string, params any, result any) {
	b.t.Helper()
	b.next++
	m := map[string]any{"id": b.next, "method": method}
	if params != nil {
		m["params"] = params
	}
	if b.session != "" {
		m["sessionId"] = b.session
	}
	text, err := json.Marshal(m)
	require.NoError(b.t, err)
	_, err = b.in.Write(append(text, 0))
	require.NoError(b.t, err)
	limit := time.After(60 * time.Second)
	for {
		select {
		case r, open := <-b.replies:
			require.True(b.t, open, "the browser ended at %s", method)
			b.event(r)
			if r.ID != b.next {
				continue
			}
			require.Empty(b.t, string(r.Error), method)
			if result != nil {
				require.NoError(b.t, json.Unmarshal(r.Result, result))
			}
			return
		case <-limit:
			b.t.Fatalf("no reply to %s", method)
		}
	}
}

func (b *browser) event(r reply) {
	switch r.Method {
	case "Runtime.exceptionThrown", "Log.entryAdded":
		b.events = append(b.events, r.Method+" "+string(r.Params))
	case "Network.requestWillBeSent":
		var p struct{ Request struct{ URL string } }
		if json.Unmarshal(r.Params, &p) == nil && !strings.HasPrefix(p.Request.URL, "file:") && !strings.HasPrefix(p.Request.URL, "about:") {
			b.events = append(b.events, "request of "+p.Request.URL)
		}
	}
}

// eval evaluates an expression in the page, and awaits it if it is a promise.
func (b *browser) eval(expression string, value any) {
	b.t.Helper()
	var out struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails json.RawMessage
	}
	b.call("Runtime.evaluate", map[string]any{"expression": expression, "awaitPromise": true, "returnByValue": true}, &out)
	require.Empty(b.t, string(out.ExceptionDetails), expression)
	if value != nil {
		require.NoError(b.t, json.Unmarshal(out.Result.Value, value), "%s gave %s", expression, out.Result.Value)
	}
}

func (b *browser) text(expression string) (s string) {
	b.t.Helper()
	b.eval(expression, &s)
	return s
}

func (b *browser) number(expression string) (n float64) {
	b.t.Helper()
	b.eval(expression, &n)
	return n
}

// until waits until a condition in the page is true.
func (b *browser) until(condition string) {
	b.t.Helper()
	for range 600 {
		var ok bool
		if b.eval("Boolean("+condition+")", &ok); ok {
			return
		}
		time.Sleep(25 * time.Millisecond)
	}
	b.t.Fatalf("never came true: %s; status: %s", condition, b.text(`document.getElementById("status").textContent`))
}

// open loads a page and waits until it is drawn. It discards earlier events.
func (b *browser) open(path, hash string) {
	b.t.Helper()
	b.call("Page.navigate", map[string]any{"url": "about:blank"}, nil)
	b.events = nil
	b.call("Page.navigate", map[string]any{"url": (&url.URL{Scheme: "file", Path: path}).String() + hash}, nil)
	b.until(`document.documentElement?.dataset.ready || document.documentElement?.dataset.failed`)
	require.Empty(b.t, b.text(`document.documentElement.dataset.failed || ""`), b.text(`document.getElementById("status").textContent`))
}

// shot saves a screenshot to the folder TURNPACK_SHOTS if that is set.
func (b *browser) shot(name string) {
	b.t.Helper()
	dir := os.Getenv("TURNPACK_SHOTS")
	if dir == "" {
		return
	}
	var out struct{ Data string }
	b.call("Page.captureScreenshot", map[string]any{"format": "png"}, &out)
	png, err := base64.StdEncoding.DecodeString(out.Data)
	require.NoError(b.t, err)
	require.NoError(b.t, os.WriteFile(filepath.Join(dir, name+".png"), png, 0o600))
}

func written(t *testing.T, path string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "page.html")
	var stdout, stderr bytes.Buffer
	require.Zero(t, run(t, view.Cmd{}, []string{path, "--out", out}, &stdout, &stderr), stderr.String())
	return out
}

// The page in a browser: a large batch with a row of 100,000 tokens.
func TestBrowser(t *testing.T) {
	kit.Long(t)
	const rows = 2000
	b := chromium(t, 1400, 900)
	const long = 13
	path, ids := batch(t, rows, long)
	file := written(t, path)
	start := time.Now()
	b.open(file, "")
	t.Logf("%d rows open in %v", rows, time.Since(start))
	require.Empty(t, b.events)
	b.shot("batch")

	// The list draws only visible rows and scrolls to its end.
	require.Less(t, b.number(`document.querySelectorAll(".item").length`), 40.0)
	b.eval(`document.getElementById("list").scrollTop = 1e9; new Promise(r => setTimeout(r, 100)).then(() => 1)`, nil)
	b.until(fmt.Sprintf(`document.querySelector('.item[data-row="%d"]')`, rows-1))
	require.Contains(t, b.text(fmt.Sprintf(`document.querySelector('.item[data-row="%d"] b').textContent`, rows-1)), ids[rows-1])

	// A click on a bar of a histogram filters the list to the rows it counts.
	b.eval(`document.querySelector('[data-measure="steps"] button').click()`, nil)
	var counted, listedRows string
	b.eval(`document.querySelector('[data-measure="steps"] button').title.match(/: ([\d,]+) row/)[1]`, &counted)
	b.eval(`document.getElementById("count").textContent.split(" ")[0]`, &listedRows)
	require.Equal(t, counted, listedRows)
	b.eval(`document.querySelector("#range button").click()`, nil)

	// The bars of a chart count every row once, even with an outlier.
	require.EqualValues(t, rows, b.number(`[...document.querySelectorAll('[data-measure="tokens"] button')].map(e => +e.title.match(/: ([\d,]+) row/)[1].replace(",", "")).reduce((a, b) => a + b)`))
	b.eval(`document.querySelector('[data-measure="tokens"] button:last-child').click()`, nil)
	require.Equal(t, b.text(`document.querySelector('[data-measure="tokens"] button:last-child').title.match(/: ([\d,]+) row/)[1]`), b.text(`document.getElementById("count").textContent.split(" ")[0]`))
	b.until(fmt.Sprintf(`document.querySelector('.item[data-row="%d"]')`, long))
	b.eval(`document.querySelector("#range button").click()`, nil)

	// Group and rollout filters.
	b.eval(`(() => { const s = document.getElementById("f-group"); s.value = "2"; s.dispatchEvent(new Event("change")); })()`, nil)
	require.Equal(t, fmt.Sprintf("4 of %s rows", comma(rows)), b.text(`document.getElementById("count").textContent`))
	b.eval(`(() => { const s = document.getElementById("f-rollout"); s.value = "1"; s.dispatchEvent(new Event("change")); })()`, nil)
	require.Equal(t, 1.0, b.number(`document.querySelectorAll(".item").length`))
	b.eval(`(() => { const s = document.getElementById("f-group"); s.value = ""; s.dispatchEvent(new Event("change")); })()`, nil)

	b.longRow(file, long)
	b.hostileText(file)

	// The search over all rows lists the rows with hits.
	b.eval(`(() => { const q = document.getElementById("q"); q.value = "NEEDLE17 "; q.dispatchEvent(new Event("input")); document.getElementById("everywhere").click(); })()`, nil)
	b.until(`document.getElementById("status").textContent.includes("stands in")`)
	require.Equal(t, fmt.Sprintf("1 of %s rows", comma(rows)), b.text(`document.getElementById("count").textContent`))
	b.until(`document.querySelector("#facts h2").textContent.startsWith("17 ")`)
	require.Empty(t, b.events, "no error, and no request leaves the file")
}

// longRow checks that a row of 100,000 tokens is drawn in part, and correctly at any
// scroll position.
func (b *browser) longRow(file string, i int) {
	t := b.t
	t.Helper()
	start := time.Now()
	b.open(file, fmt.Sprintf("#row=%d&by=logprob&token=60000", i))
	t.Logf("the long row is open in %v", time.Since(start))
	b.until(`document.querySelector('.tk[data-t="60000"]')`)
	require.Less(t, b.number(`document.querySelectorAll(".tk").length`), 6000.0, "only what is seen is drawn")
	require.NotEmpty(t, b.text(`document.querySelector(".tk:not(.out)").style.background`))
	b.shot("long-logprob")
	b.eval(`document.getElementById("text").scrollTop = 1e9`, nil)
	b.until(`document.querySelector('.tk[data-t="99990"]')`)
	// Every token drawn is inside the box: nothing is cut off at the right.
	require.Zero(t, b.number(`[...document.querySelectorAll(".tk")].filter(e => e.getBoundingClientRect().right > document.getElementById("text").getBoundingClientRect().right + 1).length`))
	// Hovering shows the facts of the token.
	b.eval(`(() => { const e = document.querySelector('.tk[data-t="99990"]'), r = e.getBoundingClientRect(); e.dispatchEvent(new MouseEvent("mousemove", {bubbles: true, clientX: r.left + 2, clientY: r.top + 2})); })()`, nil)
	tip := b.text(`document.getElementById("tip").textContent`)
	for _, fact := range []string{"token99,990", "bytes", "logprob", "advantage", "weight", "source", "step"} {
		require.Contains(t, tip, fact)
	}
	b.shot("long-tip")
	for _, by := range []string{"mask", "advantage", "weight", "source"} {
		b.eval(fmt.Sprintf(`document.querySelector('[data-mode=%q]').click()`, by), nil)
		require.Equal(t, "true", b.text(fmt.Sprintf(`document.querySelector('[data-mode=%q]').getAttribute("aria-pressed")`, by)))
		b.shot("long-" + by)
	}
	b.eval(`document.querySelector("#outline button:nth-child(4)").click()`, nil)
	b.until(`document.querySelector("#outline button:nth-child(4)").classList.contains("chosen")`)
	// Keys do the same as the buttons.
	key := func(k string) {
		b.eval(fmt.Sprintf(`document.body.dispatchEvent(new KeyboardEvent("keydown", {key: %q, bubbles: true}))`, k), nil)
	}
	key("]")
	b.until(`document.querySelector("#outline button:nth-child(5)").classList.contains("chosen")`)
	key("[")
	b.until(`document.querySelector("#outline button:nth-child(4)").classList.contains("chosen")`)
	key("3")
	b.until(`document.querySelector('[data-mode="advantage"]').getAttribute("aria-pressed") === "true"`)
	b.eval(`document.getElementById("theme").click()`, nil)
	b.shot("long-outline")
	b.eval(`document.getElementById("theme").click()`, nil)
	b.shot("long-outline-other-theme")
	require.Empty(t, b.events)
}

// hostileText checks that text of the batch is displayed and not executed.
func (b *browser) hostileText(file string) {
	t := b.t
	t.Helper()
	b.open(file, "#row=0&by=source")
	b.shot("hostile")
	require.Equal(t, "batch.parquet", b.text(`document.title`))
	shown := b.text(`document.getElementById("lines").textContent`)
	for _, want := range []string{"</script><script>document.title='taken'</script>", "<!--", "⟨U+2028⟩", "⟨U+202E⟩", "␛[31m", "␀", "漢字かな交じり文", "Ümläuten", "🙂", "→   tabs␍↵"} {
		require.Contains(t, strings.ReplaceAll(shown, "·", ""), want)
	}
	b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": 700, "height": 800, "deviceScaleFactor": 1, "mobile": false}, nil)
	b.until(`document.getElementById("text").clientWidth < 710 && [...document.querySelectorAll(".tk")].every(e => e.getBoundingClientRect().right <= innerWidth)`)
	require.Zero(t, b.number(`document.getElementById("text").scrollTop`), "a narrower window keeps the place")
	require.LessOrEqual(t, b.number(`document.documentElement.scrollWidth`), 700.0, "nothing sticks out of a narrow window")
	b.shot("narrow")
	b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": 1400, "height": 900, "deviceScaleFactor": 1, "mobile": false}, nil)
	require.Zero(t, b.number(`document.querySelectorAll("#row img, #side img, #row script").length`))
}

func comma(n int) string {
	if n >= 1000 {
		return fmt.Sprintf("%d,%03d", n/1000, n%1000)
	}
	return fmt.Sprint(n)
}
