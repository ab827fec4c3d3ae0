package wire

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"kumo/internal/crawl"
	"kumo/internal/inspect"
	"kumo/internal/store/field"
	"kumo/internal/weburl"
)

// addFiles adds what the crawl's files say of a URL. They only grow, so it does not matter whether the crawl runs; what a killed one
// has not committed is not read.
func (l *Look) addFiles(x *inspect.Explanation) error {
	if x.Known == nil && x.Page == nil {
		return l.addAnswer(x)
	}
	if err := l.addPage(x); err != nil {
		return err
	}
	skip := inspect.Skip{}
	found, err := l.lastLine("skipped.jsonl", "url", x.URL, &skip)
	if err != nil {
		return err
	}
	if found {
		x.Skipped = &skip
	}
	aside, err := crawl.FindAside(l.disk, l.dir, x.URL)
	if err != nil {
		return err
	}
	if aside != nil && x.Known != nil && x.Known.State == "left out" {
		x.Aside = &inspect.Skip{Rule: aside.Rule, Why: aside.Why, From: aside.From, Depth: aside.Depth, Time: aside.Time}
	}
	return l.addAnswer(x)
}

// addPage adds the last visit's line, and the first visit's.
func (l *Look) addPage(x *inspect.Explanation) error {
	const name = "pages.jsonl"
	lines, err := l.findLines(name, "url", x.URL)
	if err != nil || lines.last == nil {
		return err
	}
	page, first := inspect.Page{}, inspect.Page{}
	if err := readLine(name, x.URL, lines.last, &page); err != nil {
		return err
	}
	if err := readLine(name, x.URL, lines.first, &first); err != nil {
		return err
	}
	if first.Recrawl == "" {
		x.First = &first
	}
	if x.Page != nil && x.Page.Status == 0 {
		return nil
	}
	x.Page = &page
	if page.Final == x.URL {
		page.Final = ""
	}
	if warc := filepath.Join(l.dir, "warc", page.WARC); page.WARC != "" && l.isThere(warc+".open") {
		page.WARC += ".open"
	}
	return nil
}

func (l *Look) isThere(name string) bool {
	_, err := l.disk.Size(name)
	return err == nil
}

// addAnswer adds what the host's robots.txt said, as far as the crawl does not have it in memory.
func (l *Look) addAnswer(x *inspect.Explanation) error {
	u, err := weburl.Parse(x.URL)
	if err != nil || x.Robots != nil && x.Robots.Ignored {
		return err
	}
	var a crawl.Answer
	found, err := l.lastLine(crawl.AnswersName, "origin", u.Origin(), &a)
	if err != nil || !found {
		return err
	}
	if x.Robots == nil {
		x.Robots = &inspect.Robots{}
		ok, by := a.Rules().Decide(u.RequestURI())
		x.Robots.Allowed, x.Robots.Line, x.Robots.Text = ok, by.Number, by.Text
	}
	x.Robots.File, x.Robots.Time = a.URL, a.Time
	return nil
}

// lastLine reads the last line of a file in a crawl's folder whose first member has a value; false if there is none.
func (l *Look) lastLine(name, member, value string, into any) (bool, error) {
	lines, err := l.findLines(name, member, value)
	if err != nil || lines.last == nil {
		return false, err
	}
	return true, readLine(name, value, lines.last, into)
}

func readLine(name, value string, line []byte, into any) error {
	if err := json.Unmarshal(line, into); err != nil {
		return fmt.Errorf("%s: the line of %s: %w", name, value, err)
	}
	return nil
}

// ends are the first and the last of some lines, both nil if there are none.
type ends struct{ first, last []byte }

// findLines goes through the lines of a file in a crawl's folder whose first member has a value. A line that is just being written is
// none.
func (l *Look) findLines(name, member, value string) (e ends, err error) {
	f, err := l.disk.Open(filepath.Join(l.dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return e, nil
	}
	if err != nil {
		return e, err
	}
	defer f.Close()
	begin := append(field.JSON([]byte(`{"`+member+`":`), value), ',')
	for in := bufio.NewReaderSize(f, 256<<10); ; {
		part, err := in.ReadSlice('\n')
		ours := bytes.HasPrefix(part, begin)
		line := keep(nil, part, ours)
		for errors.Is(err, bufio.ErrBufferFull) { // the rest of a long line
			part, err = in.ReadSlice('\n')
			line = keep(line, part, ours)
		}
		if errors.Is(err, io.EOF) {
			return e, nil
		}
		if err != nil {
			return e, fmt.Errorf("read %s: %w", name, err)
		}
		if ours {
			e.add(line)
		}
	}
}

func keep(line, part []byte, wanted bool) []byte {
	if !wanted {
		return nil
	}
	return append(line, part...)
}

func (e *ends) add(line []byte) {
	if e.first == nil {
		e.first = line
	}
	e.last = line
}
