package worker

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"kumo/internal/content/document"
)

// exitMemory is the exit code of a child that needs too much memory.
const exitMemory = 86

// A Reader reads documents in the child.
type Reader interface {
	// Start prepares the reader; what it takes does not count as part of a document's time.
	Start(ctx context.Context) error
	Read(ctx context.Context, f document.File, lim document.Limits) (*document.Document, error)
}

// Serve is the child: it reads documents from in until the parent closes it, or is gone. open returns the reader.
func Serve(in io.Reader, out io.Writer, open func(Hello) Reader) error {
	r := bufio.NewReaderSize(in, 64<<10)
	var hello Hello
	if err := readFrame(r, &hello); err != nil {
		return fmt.Errorf("read the parent's first message: %w", err)
	}
	if hello.Total > 0 {
		debug.SetMemoryLimit(hello.Total - hello.Total/8)
	}
	reader := open(hello)
	var ready reply
	if err := reader.Start(context.Background()); err != nil {
		ready.Problem, ready.Detail = problemOf(err)
	}
	if err := writeFrame(out, ready); err != nil {
		return fmt.Errorf("write to the parent: %w", err)
	}
	if hello.Total > 0 { // after the start, as compiling needs more memory than documents
		go watchMemory(hello.Total)
	}

	type job struct {
		request
		data []byte
	}
	jobs := make(chan job)
	go func() { // apart, so that the end of the parent ends the child also while it reads a document
		for {
			var j job
			if err := readFrame(r, &j.request); err != nil {
				break
			}
			data, err := io.ReadAll(io.LimitReader(r, j.Size))
			if err != nil || int64(len(data)) < j.Size {
				break
			}
			j.data = data
			jobs <- j
		}
		os.Exit(0)
	}()
	for j := range jobs {
		ctx, cancel := context.WithTimeout(context.Background(), j.Deadline)
		d, err := reader.Read(ctx, bytes.NewReader(j.data), j.Limits)
		cancel()
		a := reply{Document: d}
		if err != nil {
			a.Document = nil
			a.Problem, a.Detail = problemOf(err)
		}
		if err := writeFrame(out, a); err != nil {
			return fmt.Errorf("write to the parent: %w", err)
		}
	}
	return nil
}

// problemOf is as [document.ProblemOf], but takes an unknown error for a failure of the process, not of the document.
func problemOf(err error) (document.Problem, string) {
	if e, ok := errors.AsType[*document.Error](err); ok {
		return e.Problem, e.Err.Error()
	}
	return document.Crashed, err.Error()
}

// watchMemory ends the process if it uses more than so many bytes.
func watchMemory(most int64) {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	for range time.Tick(20 * time.Millisecond) {
		metrics.Read(samples)
		if int64(samples[0].Value.Uint64()-samples[1].Value.Uint64()) > most { //nolint:gosec // sizes of memory
			os.Exit(exitMemory)
		}
	}
}
