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
	"kumo/internal/look"
	"kumo/internal/store/field"
	"kumo/internal/weburl"
)

// addFiles adds what the crawl's files say of a URL. They only grow, so it does not matter whether the crawl runs; what a killed one
// has not committed is not read.
func (l *Look) addFiles(x *look.Explanation) error {
	if x.Known == nil && x.Page == nil {
		return l.addAnswer(x)
	}
	page := look.Page{}
	switch found, err := l.lastLine("pages.jsonl", "url", x.URL, &page); {
	case err != nil:
		return err
	case found && (x.Page == nil || x.Page.Status != 0):
		x.Page = &page
		if page.Final == x.URL {
			page.Final = ""
		}
		if name := filepath.Join(l.dir, "warc", page.WARC); page.WARC != "" && l.isThere(name+".open") {
			page.WARC += ".open"
		}
	}
	skip := look.Skip{}
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
		x.Aside = &look.Skip{Rule: aside.Rule, Why: aside.Why, From: aside.From, Depth: aside.Depth, Time: aside.Time}
	}
	return l.addAnswer(x)
}

func (l *Look) isThere(name string) bool {
	_, err := l.disk.Size(name)
	return err == nil
}

// addAnswer adds what the host's robots.txt said, as far as the crawl does not have it in memory.
func (l *Look) addAnswer(x *look.Explanation) error {
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
		x.Robots = &look.Robots{}
		ok, by := a.Rules().Decide(u.RequestURI())
		x.Robots.Allowed, x.Robots.Line, x.Robots.Text = ok, by.Number, by.Text
	}
	x.Robots.File, x.Robots.Time = a.URL, a.Time
	return nil
}

// lastLine reads the last line of a file in a crawl's folder whose first member has a value; false if there is none. A line
// that is just being written is none.
func (l *Look) lastLine(name, member, value string, into any) (bool, error) {
	f, err := l.disk.Open(filepath.Join(l.dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	begin := append(field.JSON([]byte(`{"`+member+`":`), value), ',')
	var found []byte
	for in := bufio.NewReaderSize(f, 256<<10); ; {
		line, err := in.ReadSlice('\n')
		if bytes.HasPrefix(line, begin) {
			found = append(found[:0], line...)
		}
		for errors.Is(err, bufio.ErrBufferFull) { // the rest of a long line
			line, err = in.ReadSlice('\n')
			if len(found) > 0 && found[len(found)-1] != '\n' {
				found = append(found, line...)
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return false, fmt.Errorf("read %s: %w", name, err)
		}
	}
	if len(found) == 0 || found[len(found)-1] != '\n' {
		return false, nil
	}
	if err := json.Unmarshal(found, into); err != nil {
		return false, fmt.Errorf("%s: the line of %s: %w", name, value, err)
	}
	return true, nil
}
