//go:build unix

package worker

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"kumo/internal/content/document"
)

// TestMain is also the child and the parent of a child, if arguments say so.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "child":
			if err := Serve(os.Stdin, os.Stdout, func(Hello) Reader { return puppet{} }); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			os.Exit(0)
		case "parent":
			w := New(Config{Command: []string{os.Args[0], "child"}})
			d, err := w.Read(context.Background(), strings.NewReader("pid"), document.Default())
			if err != nil {
				fmt.Println(err)
				os.Exit(1)
			}
			go func() { _, _ = w.Read(context.Background(), strings.NewReader("hang"), document.Default()) }()
			fmt.Println(d.Title)
			select {}
		case "fails":
			fmt.Fprintln(os.Stderr, "no such thing")
			os.Exit(3)
		}
	}
	os.Exit(m.Run())
}

// A puppet does what a document's content says.
type puppet struct{}

func (puppet) Start(context.Context) error { return nil }

func (puppet) Read(ctx context.Context, f document.File, _ document.Limits) (*document.Document, error) {
	data, err := io.ReadAll(io.NewSectionReader(f, 0, f.Size()))
	if err != nil {
		return nil, err
	}
	switch what := string(data); what {
	case "hang":
		select {}
	case "slow":
		<-ctx.Done()
		return &document.Document{Problem: document.Timeout}, nil
	case "bomb":
		var all [][]byte
		for {
			all = append(all, bytes.Repeat([]byte{1}, 16<<20))
			if len(all) > 1<<20 {
				return nil, nil
			}
		}
	case "panic":
		panic("a fault of the reader")
	case "pid":
		return &document.Document{Title: strconv.Itoa(os.Getpid())}, nil
	case "broken":
		return nil, document.Errorf(document.Broken, "no header")
	default:
		return &document.Document{Title: what}, nil
	}
}

func newWorker(t *testing.T, c Config) *Worker {
	t.Helper()
	c.Command = []string{os.Args[0], "child"}
	w := New(c)
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

func read(w *Worker, what string) (string, document.Problem) {
	d, err := w.Read(context.Background(), strings.NewReader(what), document.Default())
	if err != nil {
		p, detail := document.ProblemOf(err)
		return detail, p
	}
	return d.Title, d.Problem
}

func expect(t *testing.T, w *Worker, what, title string, problem document.Problem) {
	t.Helper()
	got, p := read(w, what)
	if p != problem || title != "" && !strings.Contains(got, title) {
		t.Errorf("%s: got %q, problem %q; want %q, problem %q", what, got, p, title, problem)
	}
}

func TestFailuresCostOneDocument(t *testing.T) {
	w := newWorker(t, Config{Memory: 32 << 20})
	expect(t, w, "good", "good", "")
	expect(t, w, "panic", "a fault of the reader", document.Crashed)
	expect(t, w, "good", "good", "")
	expect(t, w, "bomb", "MiB", document.TooLarge)
	expect(t, w, "good", "good", "")
	expect(t, w, "broken", "no header", document.Broken)
	expect(t, w, "good", "good", "")
	if n := w.Started(); n != 3 {
		t.Errorf("%d children were started, want 3: a broken document costs none", n)
	}
}

func TestDeadline(t *testing.T) {
	w := newWorker(t, Config{Deadline: 50 * time.Millisecond})
	expect(t, w, "slow", "", document.Timeout)
	if n := w.Started(); n != 1 {
		t.Errorf("%d children were started, want 1: it stops by itself", n)
	}
	w.config.Grace = 200 * time.Millisecond
	expect(t, w, "hang", "did not answer", document.Timeout)
	w.config.Deadline = time.Minute // the machine may be busy
	expect(t, w, "good", "good", "")
}

func TestCanceled(t *testing.T) {
	w := newWorker(t, Config{})
	expect(t, w, "good", "good", "")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := w.Read(ctx, strings.NewReader("hang"), document.Default())
	if p, _ := document.ProblemOf(err); p != document.Timeout {
		t.Errorf("got %v", err)
	}
	expect(t, w, "good", "good", "")
}

// An announcedFile closes read when it is first read.
type announcedFile struct {
	*strings.Reader
	read chan struct{}
	once sync.Once
}

func (f *announcedFile) ReadAt(b []byte, at int64) (int, error) {
	f.once.Do(func() { close(f.read) })
	return f.Reader.ReadAt(b, at)
}

// TestKilled kills the child in the middle of a document, and while it is idle.
func TestKilled(t *testing.T) {
	w := newWorker(t, Config{})
	pid, _ := read(w, "pid")
	n, err := strconv.Atoi(pid)
	if err != nil {
		t.Fatalf("got %q", pid)
	}
	p, err := os.FindProcess(n)
	if err != nil {
		t.Fatal(err)
	}
	result := make(chan document.Problem)
	begun := &announcedFile{strings.NewReader("hang"), make(chan struct{}), sync.Once{}}
	go func() {
		_, err := w.Read(context.Background(), begun, document.Default())
		problem := document.Problem("none")
		if err != nil {
			problem, _ = document.ProblemOf(err)
		}
		result <- problem
	}()
	<-begun.read
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	if got := <-result; got != document.Crashed {
		t.Errorf("problem %q, want %q", got, document.Crashed)
	}
	pid, _ = read(w, "pid")
	if _, err := strconv.Atoi(pid); err != nil {
		t.Fatalf("got %q", pid)
	}
	c := <-w.idle
	w.idle <- c
	c.kill()
	<-c.gone
	expect(t, w, "good", "good", "")
}

func TestRecycled(t *testing.T) {
	w := newWorker(t, Config{Recycle: 2})
	for range 5 {
		expect(t, w, "good", "good", "")
	}
	if n := w.Started(); n != 3 {
		t.Errorf("%d children were started for 5 documents, want 3", n)
	}
}

func TestConcurrent(t *testing.T) {
	w := newWorker(t, Config{Children: 3})
	var wg sync.WaitGroup
	for i := range 60 {
		wg.Go(func() { expect(t, w, "document "+strconv.Itoa(i), "document "+strconv.Itoa(i), "") })
	}
	wg.Wait()
	if n := w.Started(); n < 1 || n > 3 {
		t.Errorf("%d children were started", n)
	}
}

func TestStartFails(t *testing.T) {
	w := New(Config{Command: []string{os.Args[0], "fails"}})
	for range 3 {
		expect(t, w, "good", "no such thing", document.Crashed)
	}
	if n := w.Started(); n != 1 {
		t.Errorf("%d starts, want 1: it is not repeated at once", n)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	expect(t, w, "good", "ended", document.Crashed)
}

func TestTooLarge(t *testing.T) {
	w := newWorker(t, Config{MaxFile: 3})
	expect(t, w, "good", "4 bytes", document.TooLarge)
	if n := w.Started(); n != 0 {
		t.Errorf("%d children were started", n)
	}
}

// TestParentKilled kills the parent: its child, which is busy, ends.
func TestParentKilled(t *testing.T) {
	cmd := exec.Command(os.Args[0], "parent")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Fscan(out, &pid); err != nil {
		t.Fatal(err)
	}
	if !exists(pid) {
		t.Fatalf("there is no child %d", pid)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	for end := time.Now().Add(30 * time.Second); exists(pid); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("child %d outlives its parent", pid)
		}
	}
}
