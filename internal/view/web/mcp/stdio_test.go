package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// An invalid line is answered with an error, and the session continues.
func TestLinesThatAreNoMessages(t *testing.T) {
	t.Parallel()
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- serveLines(t.Context(), New(Config{Version: "1"}), in, out)
		out.Close()
	}()
	answers := bufio.NewReader(fromServer)
	type answer struct {
		ID    *int
		Error *struct {
			Code    int
			Message string
		}
	}
	ask := func(line string) (a answer) {
		t.Helper()
		go func() { _, _ = io.WriteString(toServer, line) }() // the test ends at a read that fails
		text, err := answers.ReadBytes('\n')
		if err != nil {
			t.Fatalf("%.80q: %v", line, err)
		}
		if err := json.Unmarshal(text, &a); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		return a
	}
	const ping = `{"jsonrpc":"2.0","id":7,"method":"ping"}` + "\n"
	if a := ask(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18",` +
		`"capabilities":{},"clientInfo":{"name":"t","version":"1"}}}` + "\n"); a.ID == nil || a.Error != nil {
		t.Fatalf("%+v", a)
	}
	for line, want := range map[string]int{"hello\n": -32700, `{"jsonrpc":"2.0",` + "\n": -32700, "{} x\r\n": -32700,
		"\x00\xff\n": -32700, strings.Repeat("x", 2*maxMessage) + "\n": -32700,
		`"` + strings.Repeat("x", maxMessage) + `"` + "\n": -32700,
		"{}\n": -32600, "7\n": -32600, "[]\n": -32600, "[" + strings.TrimSpace(ping) + "]\n": -32600,
		`{"jsonrpc":"1.0","id":1,"method":"ping"}` + "\n": -32600, "\n \r\n" + `{"jsonrpc":"2.0"}` + "\n": -32600} {
		a := ask(line)
		if a.ID != nil || a.Error == nil || a.Error.Code != want || a.Error.Message == "" {
			t.Errorf("%.80q: %+v %+v", line, a, a.Error)
		}
		if a := ask(ping); a.ID == nil || *a.ID != 7 || a.Error != nil {
			t.Errorf("after %.80q: %+v", line, a)
		}
	}
	if a := ask(`{"jsonrpc":"2.0","id":8,"method":"` + strings.Repeat("x", maxMessage-60) + "\"}\n"); a.ID == nil ||
		*a.ID != 8 || a.Error == nil {
		t.Errorf("a long message: %+v", a)
	}
	// Members are case-sensitive; otherwise, a gateway in front of the server could read another method than the
	// server.
	if a := ask(`{"jsonrpc":"2.0","id":9,"method":"ping","Method":"no/such"}` + "\n"); a.ID == nil || *a.ID != 9 ||
		a.Error != nil {
		t.Errorf("with a member in another case: %+v %+v", a, a.Error)
	}
	toServer.Close()
	if err := <-ended; err != nil {
		t.Errorf("at the end: %v", err)
	}
}

// Requests that are pending at the end of the input are answered, if that does not take too long.
func TestEndOfInputWithPendingRequests(t *testing.T) {
	const lines = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18",` +
		`"capabilities":{},"clientInfo":{"name":"t","version":"1"}}}` + "\n" +
		`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n" +
		`{"jsonrpc":"2.0","id":"crawl","method":"tools/call","params":{"name":"crawl","arguments":{"url":"a.example"}}}` +
		"\n" + `{"jsonrpc":"2.0","id":3,"method":"ping"}` // without an end of the line
	for takes, wantAnswer := range map[time.Duration]bool{drainTime / 2: true, drainTime * 2: false} {
		synctest.Test(t, func(t *testing.T) {
			srv := New(Config{Version: "1", Crawl: func(ctx context.Context, _ CrawlRequest) (*CrawlResult, error) {
				select {
				case <-time.After(takes):
					return &CrawlResult{Folder: "of-the-crawl"}, nil
				case <-ctx.Done():
					return nil, ctx.Err()
				}
			}})
			var out bytes.Buffer
			began := time.Now()
			if err := serveLines(t.Context(), srv, io.NopCloser(strings.NewReader(lines)), &out); err != nil {
				t.Error(err)
			}
			if took := time.Since(began); took != min(takes, drainTime) {
				t.Errorf("a crawl of %v: ended after %v", takes, took)
			}
			if has := strings.Contains(out.String(), "of-the-crawl"); has != wantAnswer {
				t.Errorf("a crawl of %v: answered %v\n%s", takes, has, out.String())
			}
			if !strings.Contains(out.String(), `"id":3`) {
				t.Errorf("a crawl of %v: no answer to ping\n%s", takes, out.String())
			}
		})
	}
}

// The end of the process does not wait for pending requests.
func TestEndOfProcessWithPendingRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &lineWriter{changed: make(chan struct{}, 1)}
		r := &lineReader{in: io.NopCloser(nil), lines: bufio.NewReader(strings.NewReader(
			`{"jsonrpc":"2.0","id":3,"method":"ping"}`)), answers: w, closed: make(chan struct{})}
		time.AfterFunc(time.Second, r.end)
		began := time.Now()
		if _, err := io.ReadAll(r); err != nil || time.Since(began) != time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}
