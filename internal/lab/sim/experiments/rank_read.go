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

// maxLine is the maximum length of a line of a graph file.
const maxLine = 64 << 20

// ReadGraph reads a graph from text, which may be compressed with gzip or zstd. A line has a page and one or more pages
// that it links to, as URLs, numbers or other names without blanks. Lines that begin with # or % are comments. If the
// first line is a single number, it is the number of pages, and the n-th line after it has the targets of page n, from
// 0; the line may be empty.
//
// The host of a page is that of its URL. For numbered pages and hostPages above 0, each hostPages consecutive numbers
// are a host.
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

// ReadNumbered reads a graph from two lists: nodes has a line with the number, from 0, and the URL of each page; edges
// has a line with the numbers of a page and of a page that it links to.
func ReadNumbered(nodes, edges io.Reader) (*Graph, error) {
	p := graphReader{hosts: map[string]uint32{}}
	err := p.eachPair(nodes, "nodes", func(number, url string) error {
		if n, err := strconv.Atoi(number); err != nil || n != len(p.hostOf) {
			return fmt.Errorf("page number %.20q, want %d", number, len(p.hostOf))
		}
		if len(p.hostOf) == mostPages {
			return fmt.Errorf("more than %d pages", mostPages)
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
				return fmt.Errorf("%.20q is not a page number from 0 to %d", field, len(p.hostOf)-1)
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
			return errors.New("want two fields separated by a tab")
		}
		return f(a, b)
	})
}

// eachLine calls f for each line. Errors have the line number and of, which names the list.
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
	head, _ := r.Peek(4) // shorter input is not compressed
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
	numbered  int // number of pages in the first line; 0 if there is none
	row       int // page of the next line, with numbered

	numbers map[string]rank.ID
	hosts   map[string]uint32
	hostOf  []uint32
	unknown bool // the host of some page is unknown

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
		return fmt.Errorf("the first line announces %d pages, but there are lines for %d", p.numbered, p.row)
	}
	return nil
}

// mostPages is the maximum number of pages of a graph.
const mostPages = 1 << 27

func (p *graphReader) header(field string) error {
	n, err := strconv.Atoi(field)
	if err != nil || n < 1 || n > mostPages {
		return fmt.Errorf("%q is neither two pages nor a number of pages from 1 to %d", field, mostPages)
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
			return fmt.Errorf("%q is not a page number from 0 to %d", f, p.numbered-1)
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
		name = strings.Clone(name) // otherwise it would keep its line in memory
		p.numbers[name] = id
		p.hostOf = append(p.hostOf, p.host(name))
	}
	return id
}

// host returns the number of a page's host.
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

var errNoLinks = errors.New("graph without links")

func (p *graphReader) graph() (*Graph, error) {
	if len(p.from) == 0 {
		return nil, errNoLinks
	}
	n := max(p.numbered, len(p.hostOf))
	if n > mostPages {
		return nil, fmt.Errorf("the graph has %d pages; the maximum is %d", n, mostPages)
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
