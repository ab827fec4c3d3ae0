package inspect

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"path"
	"slices"
	"strings"

	"kumo/internal/archive/place"
	"kumo/internal/batch"
	"kumo/internal/batch/seqfile"
	"kumo/internal/state/store/xml"
)

// A Query says which records of a day are listed.
type Query struct {
	Other  bool     // those in other languages, which were kept apart
	Find   string   // only those that have this in URL, headline or text, whatever the case; "": all
	Words  []string // and each of these
	Offset int      // leave out so many of them
	Limit  int      // and list so many; negative: all
}

// terms is what a record has to have, in lower case.
func (q *Query) terms() (all []string) {
	for _, text := range append([]string{q.Find}, q.Words...) {
		if text != "" {
			all = append(all, strings.ToLower(text))
		}
	}
	return all
}

// Records are the entries of a day's index that a query asks for, in the order of URLs. An error ends them; that of a
// day without an index is fs.ErrNotExist.
func (c *Collection) Records(ctx context.Context, date string, q Query) iter.Seq2[batch.Entry, error] {
	return func(yield func(batch.Entry, error) bool) {
		left, skip := q.Limit, q.Offset
		if left == 0 {
			return
		}
		dir := c.folder(folderOf(q.Other), date)
		f := finder{ctx: ctx, place: c.place, dir: dir, terms: q.terms(), parts: map[string]*part{}}
		defer f.close()
		err := batch.EachLine(ctx, c.place, path.Join(dir, batch.IndexName), func(line []byte) error {
			e, err := batch.ParseEntry(line)
			found := false
			if err == nil {
				found, _, err = f.matches(&e)
			}
			switch {
			case err != nil || !found:
				return err
			case skip > 0:
				skip--
				return nil
			}
			if left--; !yield(e, nil) || left == 0 {
				return errEnough
			}
			return nil
		})
		if err != nil && !errors.Is(err, errEnough) {
			yield(batch.Entry{}, err)
		}
	}
}

var errEnough = errors.New("no more are wanted")

func folderOf(isApart bool) string {
	if isApart {
		return otherFolder
	}
	return pagesFolder
}

// A finder looks into the records of entries. Those of a part come in the order in which they lie there, so that each
// part is read once, from the first that is asked for.
type finder struct {
	ctx   context.Context
	place place.Place
	dir   string
	terms []string
	parts map[string]*part
}

type part struct {
	io.Closer
	in   *xml.Reader
	from int64 // where reading began
}

// has reports whether the record of an entry has all that is wanted, and gives the text of one that does.
func (f *finder) matches(e *batch.Entry) (found bool, text string, err error) {
	if len(f.terms) == 0 {
		return true, "", nil
	}
	p := f.parts[e.Part]
	if p == nil {
		src, err := f.place.Open(f.ctx, path.Join(f.dir, e.Part), e.Offset, -1)
		if err != nil {
			return false, "", err
		}
		p = &part{src, xml.NewReader(src), e.Offset}
		f.parts[e.Part] = p
	}
	line, offset, err := p.in.Next()
	if err == nil && p.from+offset != e.Offset {
		err = fmt.Errorf("the record of %s is not at byte %d: %w", e.URL, e.Offset, batch.ErrDamaged)
	}
	if err != nil {
		return false, "", fmt.Errorf("%s: %w: %w", path.Join(f.dir, e.Part), batch.ErrDamaged, err)
	}
	r, err := xml.Parse(line)
	if err != nil {
		return false, "", err
	}
	where := []string{strings.ToLower(r.URL), strings.ToLower(r.Headline), strings.ToLower(r.Content)}
	for _, want := range f.terms {
		if !slices.ContainsFunc(where, func(text string) bool { return strings.Contains(text, want) }) {
			return false, "", nil
		}
	}
	return true, r.Content, nil
}

func (f *finder) close() {
	for _, p := range f.parts {
		_ = p.Close() // it was only read
	}
}

// A Page is the XML record of a page.
type Page struct {
	batch.Entry
	Line   []byte // as it lies there
	Record xml.Record
	Other  bool // it is among those in other languages
}

// Page finds the XML record of a URL; fs.ErrNotExist if the day has none.
func (c *Collection) Page(ctx context.Context, date, url string) (*Page, error) {
	for _, isApart := range []bool{false, true} {
		dir := c.folder(folderOf(isApart), date)
		e, err := batch.FindEntry(ctx, c.place, path.Join(dir, batch.IndexName), url)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		pg := &Page{Entry: *e, Other: isApart}
		return pg, pg.read(ctx, c.place, dir)
	}
	return nil, fmt.Errorf("%s on %s: %w", url, date, fs.ErrNotExist)
}

func (pg *Page) read(ctx context.Context, p place.Place, dir string) error {
	src, err := p.Open(ctx, path.Join(dir, pg.Part), pg.Offset, pg.Length)
	if err != nil {
		return err
	}
	pg.Line, err = io.ReadAll(src)
	if err = errors.Join(err, src.Close()); err != nil {
		return err
	}
	if pg.Record, err = xml.Parse(pg.Line); err == nil && pg.Record.URL != pg.URL {
		err = fmt.Errorf("it is of %s", pg.Record.URL)
	}
	if err != nil {
		return fmt.Errorf("%s at byte %d: %w: %w", path.Join(dir, pg.Part), pg.Offset, batch.ErrDamaged, err)
	}
	return nil
}

// Document finds what came of a URL on a day, whether it is a page or not; fs.ErrNotExist if the day did not ask for
// it. A day that is not merged is read from its beginning.
func (c *Collection) Document(ctx context.Context, date, url string) (*batch.Document, error) {
	names, err := batch.DayFiles(ctx, c.place, c.asCollection(), "doc", date)
	if err != nil {
		return nil, err
	}
	find := findRecord
	if len(names) == 0 {
		find = scanFor // rounds are in the order in which they were fetched
		if names, err = batch.ListFiles(ctx, c.place, c.folder("doc", date)); err != nil {
			return nil, err
		}
	}
	key := batch.Key(c.Code, url)
	for _, name := range names {
		value, err := find(ctx, c.place, name, key)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if value != nil {
			d, err := batch.ReadDocument(key, value)
			return &d, err
		}
	}
	return nil, fmt.Errorf("%s on %s: %w", url, date, fs.ErrNotExist)
}

// stretchSize is how much of a file is read from one end to the other.
const stretchSize = 4 << 20

// findRecord finds the value of a key in a SequenceFile in the order of keys, by halving it; nil if there is none.
func findRecord(ctx context.Context, p place.Place, name string, key []byte) ([]byte, error) {
	info, err := p.Stat(ctx, name)
	if err != nil {
		return nil, err
	}
	from, to := int64(0), info.Size // the block with the key begins in [from, to), or there is none
	for to-from > stretchSize {
		middle := from + (to-from)/2
		first, err := firstKey(ctx, p, name, middle, to)
		if err != nil {
			return nil, err
		}
		if first == nil || bytes.Compare(first, key) > 0 {
			to = middle
		} else {
			from = middle
		}
	}
	in, err := seqfile.Open(ctx, p, name, from, to)
	if err != nil {
		return nil, err
	}
	defer func() { _ = in.Close() }() // it is only read
	for {
		k, v, err := in.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil, nil
		case err != nil:
			return nil, err
		}
		if c := bytes.Compare(k, key); c == 0 {
			return v, nil
		} else if c > 0 {
			return nil, nil
		}
	}
}

// scanFor finds the value of a key in any SequenceFile; nil if there is none.
func scanFor(ctx context.Context, p place.Place, name string, key []byte) ([]byte, error) {
	for r, err := range batch.ReadFile(ctx, p, name) {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, nil // the day was merged meanwhile
		case err != nil:
			return nil, err
		case bytes.Equal(r.Key, key):
			return r.Value, nil
		}
	}
	return nil, nil
}

// firstKey is the first key of the blocks that begin in a stretch of a file; nil if none does.
func firstKey(ctx context.Context, p place.Place, name string, from, to int64) ([]byte, error) {
	in, err := seqfile.Open(ctx, p, name, from, to)
	if err != nil {
		return nil, err
	}
	defer func() { _ = in.Close() }() // it is only read
	k, _, err := in.Next()
	if errors.Is(err, io.EOF) {
		return nil, nil
	}
	return bytes.Clone(k), err
}
