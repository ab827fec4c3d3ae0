package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"kumo/internal/base/wait"
)

// Stdio serves one client over standard input and output until the client leaves or the context ends.
func Stdio(ctx context.Context, srv *mcp.Server) error {
	return serveLines(ctx, srv, os.Stdin, os.Stdout)
}

// serveLines serves one client that sends one message per line.
func serveLines(ctx context.Context, srv *mcp.Server, in io.ReadCloser, out io.Writer) error {
	w := &lineWriter{out: out, changed: make(chan struct{}, 1)}
	r := &lineReader{in: in, lines: bufio.NewReader(in), answers: w, closed: make(chan struct{})}
	defer context.AfterFunc(ctx, r.end)()
	return srv.Run(ctx, &mcp.IOTransport{Reader: r, Writer: w, MaxLineLength: -1}) // the lineReader limits lines
}

// drainTime limits how long requests are answered after the end of the input. A client that waits for the process to
// end may kill it soon.
const drainTime = 10 * time.Second

// A lineReader passes on lines that are messages, and answers other lines with errors. The SDK's transport would end
// the session at the first of these. At the end of the input, the SDK cancels pending requests, so the lineReader
// reports the end only after these were answered.
type lineReader struct {
	in      io.Closer
	lines   *bufio.Reader
	answers *lineWriter
	rest    []byte // unread part of the current line
	once    sync.Once
	closed  chan struct{}
}

// end ends the wait for pending requests.
func (r *lineReader) end() { r.once.Do(func() { close(r.closed) }) }

func (r *lineReader) Close() error {
	r.end()
	return r.in.Close()
}

// drain waits until all requests are answered, at most for drainTime.
func (r *lineReader) drain() {
	late := time.NewTimer(drainTime)
	defer late.Stop()
	for r.answers.isAwaited() {
		select {
		case <-r.answers.changed:
		case <-r.closed:
			return
		case <-late.C:
			return
		}
	}
}

func (r *lineReader) Read(p []byte) (int, error) {
	for len(r.rest) == 0 {
		line, err := r.next()
		if err != nil {
			r.drain()
			return 0, err
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		message, failed := checkMessage(line)
		if failed != nil {
			if err := r.answer(failed); err != nil {
				return 0, err
			}
			continue
		}
		r.answers.expect(message)
		r.rest = line
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// next reads a line with its end. An overlong line is truncated and has no end.
func (r *lineReader) next() (line []byte, err error) {
	for {
		part, err := r.lines.ReadSlice('\n')
		if len(line) <= maxMessage {
			line = append(line, part...)
		}
		switch {
		case err == nil, errors.Is(err, io.EOF) && len(line) > 0:
			return line, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}

// checkMessage returns the message of a line, or the error of a line that is not a message.
func checkMessage(line []byte) (jsonrpc.Message, *jsonrpc.Error) {
	switch line = bytes.TrimSpace(line); {
	case len(line) > maxMessage:
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeParseError,
			Message: fmt.Sprintf("the line is longer than %d bytes", maxMessage)}
	case !json.Valid(line):
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeParseError, Message: "the line is not JSON: send one message per line"}
	case line[0] == '[':
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "batches are not supported: send one " +
			"message per line"}
	}
	message, err := jsonrpc.DecodeMessage(line)
	if err != nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "the line is not a JSON-RPC message: " +
			shorten(err.Error())}
	}
	return message, nil
}

// answer sends an error, without an id, because the id of an invalid message is unreliable.
func (r *lineReader) answer(failed *jsonrpc.Error) error {
	text, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": nil, "error": failed})
	if err != nil {
		return err
	}
	_, err = r.answers.Write(append(text, '\n'))
	return err
}

// A lineWriter writes lines one at a time. It knows which requests were not answered yet.
type lineWriter struct {
	changed chan struct{} // signals an answer
	out     io.Writer

	mu      sync.Mutex // held while a line is written; guards the fields below
	pending []jsonrpc.ID
	broken  bool // nobody reads the answers
}

// expect adds the request in a message, if it is one that is answered.
func (w *lineWriter) expect(message jsonrpc.Message) {
	if r, is := message.(*jsonrpc.Request); is && r.IsCall() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.pending = append(w.pending, r.ID)
	}
}

// isAwaited reports whether there are requests that were not answered, and somebody who reads the answers.
func (w *lineWriter) isAwaited() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.pending) > 0 && !w.broken
}

func (w *lineWriter) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n, err := w.out.Write(line)
	w.broken = w.broken || err != nil
	if len(w.pending) > 0 && !w.broken {
		message, err := jsonrpc.DecodeMessage(bytes.TrimSpace(line))
		if r, is := message.(*jsonrpc.Response); err == nil && is {
			if i := slices.Index(w.pending, r.ID); i >= 0 {
				w.pending = slices.Delete(w.pending, i, i+1)
			}
		}
	}
	wait.Wake(w.changed)
	return n, err
}

func (w *lineWriter) Close() error { return nil } // standard output belongs to the process
