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

// A line is what is kept of a page.
type line struct {
	URL    string `json:"url"`
	Status int    `json:"status"`
	Title  string `json:"title,omitempty"`
	Text   string `json:"text,omitempty"`
	headings
}

// headings stand on the page where their tag says.
type headings struct {
	Headings []string `json:"headings,omitempty" kumo:"h1, h2"`
}

// lines is a file of lines. A page that was on its way when the program was killed has two: the later one counts.
type lines struct {
	mu   sync.Mutex // guards below
	file *os.File
	buf  *bufio.Writer
}

var _ kumo.Store = (*lines)(nil)

// openLines opens a file of lines at its end. A line that was cut short when the program was killed goes.
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

// wholeLines is how many bytes of a file are whole lines.
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

// Put writes a page into memory.
func (l *lines) Put(p *kumo.Page) error {
	found, _ := kumo.Fields[headings](p) // what is no HTML has none
	text, err := json.Marshal(line{p.URL, p.Status, p.Title, p.Text(), found})
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err = l.buf.Write(append(text, '\n'))
	return err
}

// Sync brings what was put to the disk. Puts wait for the copy, and not for the disk.
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
