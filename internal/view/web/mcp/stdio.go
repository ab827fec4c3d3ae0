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
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Stdio serves one client over standard input and output until the client leaves or the context ends.
func Stdio(ctx context.Context, srv *mcp.Server) error {
	return serveLines(ctx, srv, os.Stdin, os.Stdout)
}

// serveLines serves one client that sends one message per line.
func serveLines(ctx context.Context, srv *mcp.Server, in io.ReadCloser, out io.Writer) error {
	w := &lineWriter{out: out}
	return srv.Run(ctx, &mcp.IOTransport{Reader: &lineReader{in: in, lines: bufio.NewReader(in), answers: w}, Writer: w,
		MaxLineLength: -1}) // the lineReader limits lines
}

// A lineReader passes on lines that are messages, and answers other lines with errors. The SDK's transport would end
// the session at the first of these.
type lineReader struct {
	in      io.Closer
	lines   *bufio.Reader
	answers io.Writer
	rest    []byte // unread part of the current line
}

func (r *lineReader) Close() error { return r.in.Close() }

func (r *lineReader) Read(p []byte) (int, error) {
	for len(r.rest) == 0 {
		line, err := r.next()
		if err != nil {
			return 0, err
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		if failed := checkMessage(line); failed != nil {
			if err := r.answer(failed); err != nil {
				return 0, err
			}
			continue
		}
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

// checkMessage returns the error of a line that is not a message; nil otherwise.
func checkMessage(line []byte) *jsonrpc.Error {
	switch line = bytes.TrimSpace(line); {
	case len(line) > maxMessage:
		return &jsonrpc.Error{Code: jsonrpc.CodeParseError,
			Message: fmt.Sprintf("the line is longer than %d bytes", maxMessage)}
	case !json.Valid(line):
		return &jsonrpc.Error{Code: jsonrpc.CodeParseError, Message: "the line is not JSON: send one message per line"}
	case line[0] == '[':
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "batches are not supported: send one " +
			"message per line"}
	}
	if _, err := jsonrpc.DecodeMessage(line); err != nil {
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "the line is not a JSON-RPC message: " +
			shorten(err.Error())}
	}
	return nil
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

// A lineWriter writes lines one at a time.
type lineWriter struct {
	mu  sync.Mutex // held while a line is written
	out io.Writer
}

func (w *lineWriter) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.out.Write(line)
}

func (w *lineWriter) Close() error { return nil } // standard output belongs to the process
