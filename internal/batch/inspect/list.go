package inspect

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"kumo/internal/archive/place"
	"kumo/internal/batch"
)

// A Listed is a part of a day's records.
type RecordList struct {
	Records []batch.Entry
	Texts   []string // of the records, if any was looked into
	Next    int64    // where to go on; 0: these are the last
	Looked  int      // how many entries were gone through
}

// What is gone through for one list.
const (
	maxListEntries = 100_000
	maxListTexts   = 2_000           // records whose text is read
	maxListTime    = 5 * time.Second // after which no more is
	maxEntry       = 128 << 10       // of a line of an index: more is damage
	maxIndex       = 1 << 40         // bytes of an index
)

// A Budget is what is gone through at most for one answer, of which several lists may be parts.
type Budget struct {
	entries int
	end     time.Time
}

// NewBudget is the budget of a query.
func NewBudget(q *Query) *Budget {
	b := &Budget{maxListEntries, time.Now().Add(maxListTime)}
	if len(q.terms()) > 0 {
		b.entries = maxListTexts
	}
	return b
}

// Spent reports whether nothing more is to be gone through.
func (b *Budget) Spent() bool { return b.entries <= 0 || !time.Now().Before(b.end) }

// ErrCursor is a cursor that no list has given.
var ErrCursor = errors.New("no list of this day has given this cursor")

// List gives up to q.Limit entries of a day's index, from a cursor on, which is 0 or what an earlier list gave as Next:
// however far back that is, what is before it is not read. It goes through a bounded part: there may be fewer, or none,
// and yet more behind them. The error of a day without an index is fs.ErrNotExist. q.Offset says nothing here.
func (c *Collection) List(ctx context.Context, date string, q Query, cursor int64) (*RecordList, error) {
	return c.ListWithin(ctx, date, q, cursor, NewBudget(&q))
}

// ListWithin is List within what a budget has left.
func (c *Collection) ListWithin(ctx context.Context, date string, q Query, cursor int64, b *Budget) (*RecordList, error) {
	if cursor > maxIndex { // some disks refuse to look there
		return nil, ErrCursor
	}
	dir := c.folder(folderOf(q.Other), date)
	name := path.Join(dir, batch.IndexName)
	src, err := c.place.Open(ctx, name, max(cursor-1, 0), -1)
	if err != nil {
		return nil, err
	}
	defer src.Close() // it is only read
	in := bufio.NewReaderSize(src, maxEntry)
	if cursor > 0 {
		if before, err := in.ReadByte(); err != nil || before != '\n' {
			return nil, ErrCursor
		}
	}
	f := finder{ctx: ctx, place: c.place, dir: dir, terms: q.terms(), parts: map[string]*part{}}
	defer f.close()
	l := &RecordList{Records: []batch.Entry{}}
	for at := cursor; ; {
		line, err := in.ReadSlice('\n')
		if errors.Is(err, io.EOF) && len(line) == 0 {
			return l, nil
		}
		if len(l.Records) == q.Limit || b.entries <= 0 || l.Looked%100 == 99 && b.Spent() {
			l.Next = at
			return l, ctx.Err()
		}
		found, text := false, ""
		var e batch.Entry
		if err == nil || errors.Is(err, io.EOF) { // a line that was cut cannot be parsed
			e, err = batch.ParseEntry(line)
		} else if errors.Is(err, bufio.ErrBufferFull) {
			err = fmt.Errorf("a line of more than %d bytes: %w", maxEntry, batch.ErrDamaged)
		}
		if err == nil {
			found, text, err = f.matches(&e)
		}
		if err == nil && l.Looked%100 == 99 {
			err = ctx.Err()
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		l.Looked++
		b.entries--
		at += int64(len(line))
		if !found {
			continue
		}
		if l.Records = append(l.Records, e); len(f.terms) > 0 {
			l.Texts = append(l.Texts, text)
		}
	}
}

// A Brief is a day in a line.
type Brief struct {
	Row
	State string `json:"state"` // done; how far it is; why it is not
	Done  bool   `json:"done"`
	// SoFar is how many URLs a day that is not done has fetched; Pages, Sites and Bytes of one are not known yet.
	SoFar int64 `json:"fetched_so_far"`
}

// Damaged is the state of a day whose files cannot be read.
const Damaged = "damaged"

// Brief reads what a day came to, in one short read or two; of one that is not done how far it is. One that is damaged
// says so.
func (c *Collection) Brief(ctx context.Context, date string) (*Brief, error) {
	counts, err := c.counts(ctx, date)
	var s *batch.State
	if err == nil && counts == nil {
		s, err = batch.ReadState(ctx, c.place, c.asCollection(), date)
		if err == nil && s == nil {
			err = fmt.Errorf("collection %s has no day %s: %w", c.Code, date, fs.ErrNotExist)
		}
	}
	b := &Brief{Row: *newRow(c.Code), State: StateOf(s)}
	b.Date, b.Directory, b.Days = date, c.Directory, 1
	switch {
	case errors.Is(err, batch.ErrDamaged):
		b.State = Damaged
	case err != nil:
		return nil, err
	case counts != nil:
		d := Day{Date: date, Counts: counts}
		b.Row, b.Done = *d.row(c), true
	default:
		b.SoFar = s.Count("fetched")
	}
	return b, nil
}

// StateOf is how far a day is, in words. One without a state is done.
func StateOf(s *batch.State) string {
	switch {
	case s == nil:
		return "done"
	case s.Next.Job != "":
		return fmt.Sprintf("round %d, %s", s.Next.Round, s.Next.Job)
	case s.Nothing != "":
		return "nothing fetched"
	case s.Cut != "":
		return "cut off " + s.Cut
	}
	return "done"
}

// A Folder is the files of a day in one of the collection's folders.
type Folder struct {
	Name  string // doc, out, …
	Path  string // in the place
	Files []File // the first of them
	All   int    // how many there are
	Bytes int64  // of all
}

// A File is one of a day's.
type File struct {
	Name  string // below the folder
	Bytes int64
}

// folders are those in which a day has files.
var folders = []string{"in", "doc", "moved", "out", "known", pagesFolder, otherFolder, batch.FieldsFolder, "tally"}

const (
	maxWalked = 100_000 // files of a folder that are counted
	maxLists  = 16
)

// Files are a day's files by folder, up to n of each named. Folders are listed beside each other: a day of many rounds
// has hundreds, and a store far away answers each in its time.
func (c *Collection) Files(ctx context.Context, date string, n int) (all []Folder, err error) {
	w := walker{place: c.place, named: n, lists: make(chan struct{}, maxLists)}
	found := make([]Folder, len(folders))
	group, ctx := errgroup.WithContext(ctx)
	for i, name := range folders {
		group.Go(func() (err error) {
			var walked atomic.Int64
			found[i], err = w.walk(ctx, c.folder(name, date), "", &walked)
			found[i].Name, found[i].Path = name, c.folder(name, date)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(found, func(f Folder) bool { return f.All == 0 }), nil
}

// A walker counts the files of folders.
type walker struct {
	place place.Place
	named int           // so many files of a folder are
	lists chan struct{} // who lists has one
}

// walk counts the files below a part of a folder.
func (w *walker) walk(ctx context.Context, dir, below string, walked *atomic.Int64) (f Folder, err error) {
	f.Files = []File{}
	w.lists <- struct{}{}
	infos, err := w.place.List(ctx, path.Join(dir, below))
	<-w.lists
	if n := int64(len(infos)); err != nil || walked.Add(n)-n > maxWalked {
		return f, err
	}
	parts := make([]Folder, len(infos))
	var group errgroup.Group
	for i, info := range infos {
		name := path.Join(below, info.Name)
		if !info.IsDir {
			parts[i] = Folder{Files: []File{{name, info.Size}}, All: 1, Bytes: info.Size}
			continue
		}
		group.Go(func() (err error) {
			parts[i], err = w.walk(ctx, dir, name, walked)
			return err
		})
	}
	err = group.Wait()
	for _, p := range parts {
		f.All, f.Bytes = f.All+p.All, f.Bytes+p.Bytes
		f.Files = append(f.Files, p.Files[:min(len(p.Files), w.named-len(f.Files))]...)
	}
	return f, err
}
