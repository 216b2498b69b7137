// Command demo runs the service against an engine without a model, runs agents that use
// Python's openai and anthropic packages, ends their rollouts and prints the trained text.
//
//	demo SERVICE MODEL_FOLDER AGENTS.PY     SERVICE is the binary; PYTHON names the interpreter
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/internal/fakeengine"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize"
)

var script = []fakeengine.Reply{
	{Content: "I look.", Calls: []fakeengine.Call{{Name: "bash", Arguments: json.RawMessage(`{"command": "ls"}`)}}},
	{Content: "There are two files: a.txt and b.txt."},
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func run(args []string) (err error) {
	if len(args) != 3 {
		return errors.New("expected the service's binary, a model folder and agents.py")
	}
	model, err := tokenize.Load(args[1], tokenize.LoadOptions{})
	if err != nil {
		return err
	}
	engine := httptest.NewServer(fakeengine.New(fakeengine.Options{Model: model, Script: script, Event: 3}))
	defer engine.Close()
	dir, err := os.MkdirTemp("", "service-demo")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	service := exec.Command(args[0], "--model", args[1], "--engine", engine.URL, "--listen", "127.0.0.1:0", "--group", "4",
		"--journal", filepath.Join(dir, "journal"), "--out", filepath.Join(dir, "batches"))
	service.Stderr = os.Stderr
	out, err := service.StdoutPipe()
	if err == nil {
		err = service.Start()
	}
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, service.Process.Signal(syscall.SIGTERM), service.Wait())
	}()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return fmt.Errorf("the service did not start: %w", err)
	}
	url := "http://" + strings.TrimSpace(strings.TrimPrefix(line, "listening on "))
	ids := []string{"task-7.0", "task-7.1", "task-7.2", "task-7.3"}
	if err := agents(url, args[2], ids); err != nil {
		return err
	}
	for i, id := range ids {
		answer, err := ask("POST", url+"/rollouts/"+id+"/end", fmt.Sprintf(`{"group": "task-7", "resolved": %v}`, i < 2))
		if err != nil {
			return err
		}
		fmt.Printf("%s ended: %s", id, answer)
	}
	batch, err := ask("GET", url+"/batches?after=0&wait=30s", "")
	if err != nil {
		return err
	}
	if err := show(model, batch); err != nil {
		return err
	}
	_, err = ask("POST", url+"/batches/ack", `{"seq": 1}`)
	return err
}

// agents runs the Python agents. If their packages are not installed, it does the same by
// plain HTTP.
func agents(url, file string, ids []string) error {
	python := os.Getenv("PYTHON")
	if python == "" {
		python = "python3"
	}
	if said, err := exec.Command(python, "-c", "import openai, anthropic").CombinedOutput(); err == nil {
		cmd := exec.Command(python, append([]string{file, url}, ids...)...)
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		return cmd.Run()
	} else if lines := bytes.Split(bytes.TrimSpace(said), []byte("\n")); true {
		fmt.Printf("SKIPPED: the agents of Python, since %s has no openai and anthropic (%s); plain requests take their place\n", python, lines[len(lines)-1])
	}
	for _, id := range ids {
		messages := `{"role":"user","content":"How many files are here?"}`
		for range 2 {
			text, err := ask("POST", url+"/rollouts/"+id+"/v1/chat/completions", `{"model":"m","messages":[`+messages+`],"tools":[{"type":"function","function":{"name":"bash","parameters":{"type":"object"}}}]}`)
			if err != nil {
				return err
			}
			var reply struct {
				Choices []struct{ Message json.RawMessage }
			}
			if err := json.Unmarshal(text, &reply); err != nil || len(reply.Choices) == 0 {
				return fmt.Errorf("found %s, expected a completion", text)
			}
			var said struct {
				Calls []struct{ ID string } `json:"tool_calls"`
			}
			if err := json.Unmarshal(reply.Choices[0].Message, &said); err != nil {
				return err
			}
			messages += "," + string(reply.Choices[0].Message)
			for _, c := range said.Calls {
				messages += fmt.Sprintf(`,{"role":"tool","tool_call_id":%q,"content":"a.txt b.txt\n"}`, c.ID)
			}
		}
	}
	return nil
}

func ask(method, url, body string) ([]byte, error) {
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s %s: %d %s", method, url, answer.StatusCode, text)
	}
	return text, err
}

// show prints the rows of a batch with trained text in brackets.
func show(model *tokenize.Model, batch []byte) error {
	r, err := export.NewReader(bytes.NewReader(batch), int64(len(batch)))
	if err != nil {
		return err
	}
	for {
		row, err := r.Read()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		fmt.Printf("\n%s, %d tokens, %d trained, advantage %+.2f\n", row.ID, row.Len(), row.Sequence.Trained(), *row.Advantage)
		if err := text(model, &row); err != nil {
			return err
		}
	}
}

func text(model *tokenize.Model, row *rollout.Sample) error {
	for from := 0; from < row.Len(); {
		to := from
		for trained := row.Weight[from] > 0; to < row.Len() && (row.Weight[to] > 0) == trained; {
			to++
		}
		said, err := model.Tokenizer.Decode(row.IDs[from:to])
		if err != nil {
			return err
		}
		if row.Weight[from] > 0 {
			said = "\x1b[1m[" + said + "]\x1b[0m"
		}
		fmt.Print(said)
		from = to
	}
	fmt.Println()
	return nil
}
