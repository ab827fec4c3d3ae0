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

// A RecordList is a part of a day's records.
type RecordList struct {
	Records []batch.Entry
	Texts   []string // text of each record whose text was read
	Next    int64    // cursor of the next part; 0: this is the last part
	Looked  int      // number of scanned entries
}

// Limits of one list.
const (
	maxListEntries = 100_000
	maxListTexts   = 2_000           // records whose text is read
	maxListTime    = 5 * time.Second // time after which no more entries are scanned
	maxEntry       = 128 << 10       // bytes of an index line; longer lines are damage
	maxIndex       = 1 << 40         // bytes of an index
)

// A Budget limits the scanning for one answer, which can consist of several lists.
type Budget struct {
	entries int
	end     time.Time
}

// NewBudget returns the budget of a query.
func NewBudget(q *Query) *Budget {
	b := &Budget{maxListEntries, time.Now().Add(maxListTime)}
	if len(q.terms()) > 0 {
		b.entries = maxListTexts
	}
	return b
}

// Spent reports whether the budget is used up.
func (b *Budget) Spent() bool { return b.entries <= 0 || !time.Now().Before(b.end) }

// ErrCursor is the error for a cursor that no list returned.
var ErrCursor = errors.New("not a cursor that a list of this day returned")

// List returns up to q.Limit entries of a day's index, from a cursor, which is 0 or the Next of an earlier list.
// Entries before the cursor are not read. A call scans a bounded part: it may return few or no entries although more
// follow. If the day has no index, the error is fs.ErrNotExist. q.Offset is ignored.
func (c *Collection) List(ctx context.Context, date string, q Query, cursor int64) (*RecordList, error) {
	return c.ListWithin(ctx, date, q, cursor, NewBudget(&q))
}

// ListWithin is like List, with the rest of a budget.
func (c *Collection) ListWithin(
	ctx context.Context,
	date string,
	q Query,
	cursor int64,
	b *Budget,
) (*RecordList, error) {
	if cursor > maxIndex { // some file systems fail for larger offsets
		return nil, ErrCursor
	}
	dir := c.folder(folderOf(q.Other), date)
	name := path.Join(dir, batch.IndexName)
	src, err := c.place.Open(ctx, name, max(cursor-1, 0), -1)
	if err != nil {
		return nil, err
	}
	defer src.Close() // opened for reading only
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
		if err == nil || errors.Is(err, io.EOF) { // a truncated line cannot be parsed
			e, err = batch.ParseEntry(line)
		} else if errors.Is(err, bufio.ErrBufferFull) {
			err = fmt.Errorf("line of more than %d bytes: %w", maxEntry, batch.ErrDamaged)
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

// A Brief is a summary of a day.
type Brief struct {
	Row
	State string `json:"state"` // done; the current step; or why nothing was fetched
	Done  bool   `json:"done"`
	// SoFar is the number of URLs fetched on a day that is not done. Its Pages, Sites and Bytes are not known yet.
	SoFar int64 `json:"fetched_so_far"`
}

// Damaged is the state of a day whose files cannot be read.
const Damaged = "damaged"

// Brief reads a summary of a day, with one or two short reads. For a damaged day, State is Damaged.
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

// StateOf returns the state of a day as text. A day without a state is done.
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

// A Folder describes a day's files in one of the collection's folders.
type Folder struct {
	Name  string // doc, out, …
	Path  string // in the storage location
	Files []File // some of the files
	All   int    // number of files
	Bytes int64  // total size
}

// A File is one of a day's files.
type File struct {
	Name  string // relative to the folder
	Bytes int64
}

// folders lists the folders with a day's files.
var folders = []string{"in", "doc", "moved", "out", "known", pagesFolder, otherFolder, batch.FieldsFolder, "tally"}

const (
	maxWalked = 100_000 // limit for counting the files of a folder
	maxLists  = 16
)

// Files lists a day's files by folder, up to n per folder. Folders are listed concurrently, because a day with many
// rounds has hundreds, and a remote store answers slowly.
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
	named int           // maximum number of files per folder to return
	lists chan struct{} // a slot for each listing
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
