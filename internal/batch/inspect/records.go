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

// A Query selects records of a day.
type Query struct {
	Other  bool     // pages in other languages instead
	Find   string   // only records with this text in URL, headline or text, ignoring case; "": all
	Words  []string // and with each of these words
	Offset int      // number of records to skip
	Limit  int      // maximum number of records; negative: all
}

// terms returns the texts that a record must contain, in lower case.
func (q *Query) terms() (all []string) {
	for _, text := range append([]string{q.Find}, q.Words...) {
		if text != "" {
			all = append(all, strings.ToLower(text))
		}
	}
	return all
}

// Records iterates over the entries of a day's index that match a query, sorted by URL. An error ends the iteration. If
// the day has no index, it is fs.ErrNotExist.
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

var errEnough = errors.New("enough records")

func folderOf(isApart bool) string {
	if isApart {
		return otherFolder
	}
	return pagesFolder
}

// A finder checks the records of entries. The entries of a part arrive in file order, so each part is read only once,
// from the first record that is checked.
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
	from int64 // offset at which reading began
}

// matches reports whether the record of an entry contains all terms, and returns the text of a matching record.
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
		err = fmt.Errorf("no record of %s at byte %d: %w", e.URL, e.Offset, batch.ErrDamaged)
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
		_ = p.Close() // opened for reading only
	}
}

// A Page is the XML record of a page.
type Page struct {
	batch.Entry
	Line   []byte // raw line
	Record xml.Record
	Other  bool // stored among pages in other languages
}

// Page finds the XML record of a URL. The error is fs.ErrNotExist if the day has none.
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

// Document finds the Document of a URL on a day, which need not be a page. The error is fs.ErrNotExist if the day did
// not request the URL. A day that is not merged is scanned from its beginning.
func (c *Collection) Document(ctx context.Context, date, url string) (*batch.Document, error) {
	names, err := batch.DayFiles(ctx, c.place, c.asCollection(), "doc", date)
	if err != nil {
		return nil, err
	}
	find := findRecord
	if len(names) == 0 {
		find = scanFor // files of rounds are in the order of fetching
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

// stretchSize is the size below which a part of a file is scanned sequentially.
const stretchSize = 4 << 20

// findRecord finds the value of a key in a sorted SequenceFile by binary search; nil if there is none.
func findRecord(ctx context.Context, p place.Place, name string, key []byte) ([]byte, error) {
	info, err := p.Stat(ctx, name)
	if err != nil {
		return nil, err
	}
	from, to := int64(0), info.Size // the block with the key, if any, begins in [from, to)
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
	defer func() { _ = in.Close() }() // opened for reading only
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

// scanFor finds the value of a key in an unsorted SequenceFile; nil if there is none.
func scanFor(ctx context.Context, p place.Place, name string, key []byte) ([]byte, error) {
	for r, err := range batch.ReadFile(ctx, p, name) {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, nil // the day was merged in the meantime
		case err != nil:
			return nil, err
		case bytes.Equal(r.Key, key):
			return r.Value, nil
		}
	}
	return nil, nil
}

// firstKey returns the first key of the blocks that begin in a part of a file; nil if none does.
func firstKey(ctx context.Context, p place.Place, name string, from, to int64) ([]byte, error) {
	in, err := seqfile.Open(ctx, p, name, from, to)
	if err != nil {
		return nil, err
	}
	defer func() { _ = in.Close() }() // opened for reading only
	k, _, err := in.Next()
	if errors.Is(err, io.EOF) {
		return nil, nil
	}
	return bytes.Clone(k), err
}
