package wire

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"

	"kumo/internal/crawl"
	"kumo/internal/frontier"
	"kumo/internal/seen"
)

// An Explanation is what a crawl knows of a URL, with its lines in the crawl's files.
type Explanation struct {
	*crawl.Explanation
	Page    map[string]any // its line in pages.jsonl, nil if there is none
	Skipped map[string]any // its last line in skipped.jsonl
}

// Explain says what became of a URL.
func (c *Crawl) Explain(url string) (*Explanation, error) {
	x, err := c.engine.Explain(url)
	if err != nil {
		return nil, err
	}
	all := &Explanation{Explanation: x}
	if all.Page, err = c.lastLine("pages.jsonl", x.URL); err != nil {
		return nil, err
	}
	all.Skipped, err = c.lastLine("skipped.jsonl", x.URL)
	return all, err
}

// lastLine is the last line of a file in JSON that speaks of a URL.
func (c *Crawl) lastLine(name, url string) (map[string]any, error) {
	f, err := c.disk.Open(c.folder.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it is only read
	text, err := json.Marshal(url)
	if err != nil {
		return nil, err
	}
	begin := append([]byte(`{"url":`), append(text, ',')...)
	var found []byte
	in := bufio.NewReaderSize(f, 1<<20)
	for {
		line, err := in.ReadBytes('\n')
		if bytes.HasPrefix(line, begin) {
			found = line
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
	}
	if found == nil {
		return nil, nil
	}
	var fields map[string]any
	if err := json.Unmarshal(found, &fields); err != nil {
		return nil, fmt.Errorf("%s: the line of %s: %w", name, url, err)
	}
	return fields, nil
}

// Hosts are the first n hosts where something waits, those with the most first.
func (c *Crawl) Hosts(n int) iter.Seq2[frontier.HostInfo, error] {
	return c.Frontier.Hosts(n, frontier.ByWaiting)
}

// Queue are the first n items that wait at a host.
func (c *Crawl) Queue(host string, n int) ([]frontier.Item, error) { return c.Frontier.Queue(host, n) }

// Seen are the known URLs that begin with a prefix.
func (c *Crawl) Seen(prefix string) iter.Seq2[seen.Entry, error] {
	db, ok := c.views.Seen.(*seen.DB)
	if !ok {
		return func(func(seen.Entry, error) bool) {}
	}
	return db.Scan(prefix)
}
