package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"sync"

	"kumo"
)

// A line is the stored record of a page.
type line struct {
	URL    string `json:"url"`
	Status int    `json:"status"`
	Title  string `json:"title,omitempty"`
	Text   string `json:"text,omitempty"`
	headings
}

// headings is read from a page by its tags.
type headings struct {
	Headings []string `json:"headings,omitempty" kumo:"h1, h2"`
}

// lines is a file with a line for each page. A page in progress when the program was killed has two lines; the later
// one counts.
type lines struct {
	mu   sync.Mutex // guards the following fields
	file *os.File
	buf  *bufio.Writer
}

var _ kumo.Store = (*lines)(nil)

// openLines opens a file and appends to it. It removes a line that was cut off when the program was killed.
func openLines(name string) (*lines, error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o666)
	if err != nil {
		return nil, err
	}
	end, err := wholeLines(f)
	if err == nil {
		err = f.Truncate(end)
	}
	if err == nil {
		_, err = f.Seek(end, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &lines{file: f, buf: bufio.NewWriter(f)}, nil
}

// wholeLines returns the number of bytes in complete lines.
func wholeLines(f io.Reader) (n int64, err error) {
	in := bufio.NewReader(f)
	for {
		switch text, err := in.ReadString('\n'); {
		case errors.Is(err, io.EOF):
			return n, nil
		case err != nil:
			return n, err
		default:
			n += int64(len(text))
		}
	}
}

// Put adds a page to the buffer in memory.
func (l *lines) Put(p *kumo.Page) error {
	found, _ := kumo.Fields[headings](p) // pages that are not HTML have no headings
	text, err := json.Marshal(line{p.URL, p.Status, p.Title, p.Text(), found})
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err = l.buf.Write(append(text, '\n'))
	return err
}

// Sync writes the buffer to disk. Puts wait while the buffer is copied, but not for the disk.
func (l *lines) Sync() error {
	l.mu.Lock()
	err := l.buf.Flush()
	l.mu.Unlock()
	if err != nil {
		return err
	}
	return l.file.Sync()
}

// Close closes the file. Run has synced it.
func (l *lines) Close() error { return l.file.Close() }
