package experiments

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"kumo/internal/state/rank"
)

// maxLine is how long a line of a graph may be.
const maxLine = 64 << 20

// ReadGraph reads a graph as text, or that compressed by gzip or zstd. A line has a page and one that it links to, or
// more (an adjacency list), by URLs, numbers or other names without blanks; a line that begins with # or % says
// nothing. Where the first line is one number, pages are numbered from 0: it says how many there are, and each line
// behind it has the pages to which the next links, which may be none.
//
// Hosts are those of URLs. Where pages have numbers, and hostPages is not 0, so many numbers in a row are a host.
func ReadGraph(from io.Reader, hostPages int) (*Graph, error) {
	r, end, err := inflated(bufio.NewReaderSize(from, 1<<20))
	if err != nil {
		return nil, err
	}
	defer end()
	p := graphReader{numbers: map[string]rank.ID{}, hostPages: hostPages, hosts: map[string]uint32{}}
	if err := p.read(r); err != nil {
		return nil, err
	}
	return p.graph()
}

// ReadNumbered reads a graph of two lists: nodes, a line with a number, from 0 on, and a URL for each page, and edges,
// a line with the numbers of a page and of one that it links to.
func ReadNumbered(nodes, edges io.Reader) (*Graph, error) {
	p := graphReader{hosts: map[string]uint32{}}
	err := p.eachPair(nodes, "nodes", func(number, url string) error {
		if n, err := strconv.Atoi(number); err != nil || n != len(p.hostOf) {
			return fmt.Errorf("its number is %.20q, and %d was to come", number, len(p.hostOf))
		}
		if len(p.hostOf) == mostPages {
			return fmt.Errorf("up to %d pages are possible", mostPages)
		}
		p.hostOf = append(p.hostOf, p.host(url))
		return nil
	})
	if err != nil {
		return nil, err
	}
	err = p.eachPair(edges, "edges", func(from, to string) error {
		for _, field := range []string{from, to} {
			if n, err := strconv.Atoi(field); err != nil || n < 0 || n >= len(p.hostOf) {
				return fmt.Errorf("%.20q is no node from 0 to %d", field, len(p.hostOf)-1)
			}
		}
		u, _ := strconv.Atoi(from)
		v, _ := strconv.Atoi(to)
		p.link(rank.ID(u), rank.ID(v))
		return nil
	})
	if err != nil {
		return nil, err
	}
	return p.graph()
}

func (p *graphReader) eachPair(from io.Reader, what string, f func(a, b string) error) error {
	return eachLine(from, " of the "+what, func(line string) error {
		a, b, is := strings.Cut(line, "\t")
		if !is {
			return errors.New("it has not two fields with a tab between them")
		}
		return f(a, b)
	})
}

// eachLine calls f for each line. An error says in which line of what it came.
func eachLine(from io.Reader, of string, f func(line string) error) error {
	lines := bufio.NewScanner(from)
	lines.Buffer(make([]byte, 64<<10), maxLine)
	n := 1
	for ; lines.Scan(); n++ {
		if err := f(lines.Text()); err != nil {
			return fmt.Errorf("line %d%s: %w", n, of, err)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("line %d%s: %w", n, of, err)
	}
	return nil
}

func inflated(r *bufio.Reader) (io.Reader, func(), error) {
	head, _ := r.Peek(4) // what is shorter is no archive
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(r)
		return z, func() {}, err
	case bytes.Equal(head, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		z, err := zstd.NewReader(r)
		if err != nil {
			return nil, nil, err
		}
		return z, z.Close, nil
	}
	return r, func() {}, nil
}

type graphReader struct {
	hostPages int
	numbered  int // pages, of a graph that says so; 0 if it does not
	row       int // the page whose line is next, of a numbered graph

	numbers map[string]rank.ID
	hosts   map[string]uint32
	hostOf  []uint32
	unknown bool // some page's host is

	from, to []rank.ID
}

func (p *graphReader) read(r io.Reader) error {
	err := eachLine(r, "", func(line string) error {
		if strings.HasPrefix(line, "#") || strings.HasPrefix(line, "%") {
			return nil
		}
		switch fields := strings.Fields(line); {
		case p.numbered > 0:
			return p.adjacent(fields)
		case len(fields) == 1 && len(p.from) == 0 && len(p.numbers) == 0:
			return p.header(fields[0])
		case len(fields) > 0:
			p.named(fields)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if p.numbered > 0 && p.row != p.numbered {
		return fmt.Errorf("the first line says %d pages, and there are lines for %d", p.numbered, p.row)
	}
	return nil
}

// mostPages is how many pages a graph may have.
const mostPages = 1 << 27

func (p *graphReader) header(field string) error {
	n, err := strconv.Atoi(field)
	if err != nil || n < 1 || n > mostPages {
		return fmt.Errorf("%q is neither two pages nor how many there are, from 1 to %d", field, mostPages)
	}
	p.numbered = n
	return nil
}

func (p *graphReader) adjacent(fields []string) error {
	if p.row == p.numbered {
		if len(fields) == 0 {
			return nil
		}
		return fmt.Errorf("there are only %d pages", p.numbered)
	}
	for _, f := range fields {
		to, err := strconv.Atoi(f)
		if err != nil || to < 0 || to >= p.numbered {
			return fmt.Errorf("%q is no page from 0 to %d", f, p.numbered-1)
		}
		p.link(rank.ID(p.row), rank.ID(to))
	}
	p.row++
	return nil
}

func (p *graphReader) named(fields []string) {
	from := p.number(fields[0])
	for _, f := range fields[1:] {
		p.link(from, p.number(f))
	}
}

func (p *graphReader) link(from, to rank.ID) { p.from, p.to = append(p.from, from), append(p.to, to) }

func (p *graphReader) number(name string) rank.ID {
	id, known := p.numbers[name]
	if !known {
		id = rank.ID(len(p.numbers))
		name = strings.Clone(name) // a part of its line
		p.numbers[name] = id
		p.hostOf = append(p.hostOf, p.host(name))
	}
	return id
}

// host is the number of a page's host.
func (p *graphReader) host(page string) uint32 {
	name := ""
	if _, rest, isURL := strings.Cut(page, "://"); isURL {
		name = rest
		if end := strings.IndexAny(rest, "/?#"); end >= 0 {
			name = rest[:end]
		}
	} else if n, err := strconv.ParseUint(page, 10, 63); err == nil && p.hostPages > 0 {
		name = strconv.FormatUint(n/uint64(p.hostPages), 10)
	} else {
		p.unknown = true
		return 0
	}
	h, known := p.hosts[name]
	if !known {
		h = uint32(len(p.hosts))
		p.hosts[name] = h
	}
	return h
}

var errNoLinks = errors.New("the graph has no links")

func (p *graphReader) graph() (*Graph, error) {
	if len(p.from) == 0 {
		return nil, errNoLinks
	}
	n := max(p.numbered, len(p.hostOf))
	if n > mostPages {
		return nil, fmt.Errorf("the graph has %d pages, and up to %d are possible", n, mostPages)
	}
	g := graphOf(n, func(link func(from, to rank.ID)) {
		for i := range p.from {
			link(p.from[i], p.to[i])
		}
	})
	switch {
	case p.numbered > 0 && p.hostPages > 0:
		g.hosts = make([]uint32, n)
		for u := range g.hosts {
			g.hosts[u] = uint32(u / p.hostPages)
		}
		g.count = (n-1)/p.hostPages + 1
	case p.numbered == 0 && !p.unknown:
		g.hosts, g.count = p.hostOf, len(p.hosts)
	}
	return g, nil
}
