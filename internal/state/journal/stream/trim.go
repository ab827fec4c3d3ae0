package stream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"

	"kumo/internal/state/journal"
)

// A mark is an entry of the log, and the position of the journal after it.
type mark struct {
	number uint64
	end    journal.Position
	sent   int64 // bytes of entries up to it, added by this process
}

// maxMarks limits the number of marks. When it is reached, every second mark is dropped, and Trim may drop less of the
// log.
const maxMarks = 4096

// addMark adds a mark for the entry appended last. Only the shipper calls it, with mu held.
func (j *Journal) addMark() {
	j.marks = append(j.marks, mark{j.to.last, j.shipped, j.to.sent})
	if len(j.marks) < maxMarks {
		return
	}
	kept := j.marks[:1]
	for i := 2; i < len(j.marks); i += 2 {
		kept = append(kept, j.marks[i])
	}
	j.marks = kept
}

// markBefore returns the last mark at or before a position. If there is none, it returns the first mark, where the log
// was last trimmed.
func (j *Journal) markBefore(at journal.Position) (int, mark) {
	i := max(sort.Search(len(j.marks), func(i int) bool { return j.marks[i].end > at })-1, 0)
	return i, j.marks[i]
}

// Trimmable returns how many bytes of the log Trim would drop. It counts only bytes written by this process.
func (j *Journal) Trimmable(before journal.Position) int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	_, m := j.markBefore(before)
	return m.sent - j.marks[0].sent
}

// Trim drops the log's data before a position, in whole entries, except the last entry. Later reads begin there.
func (j *Journal) Trim(ctx context.Context, before journal.Position) error {
	j.mu.Lock()
	_, m := j.markBefore(before)
	j.mu.Unlock()
	if m.end > before {
		return nil
	}
	if err := j.to.logs.Trim(ctx, j.to.name, m.number+1); err != nil {
		return fmt.Errorf("trim the log %s: %w", j.to.name, err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if i, now := j.markBefore(m.end); now.end == m.end {
		j.marks = slices.Delete(j.marks, 0, i)
	}
	return nil
}

// CheckOwner returns nil if the log's last entry is from this journal. It returns [ErrSealed] or [ErrFenced] if another
// process has sealed, removed or opened the log since.
func (j *Journal) CheckOwner(ctx context.Context) error {
	n, data, err := j.to.logs.Last(ctx, j.to.name)
	if err != nil {
		return fmt.Errorf("read the end of the log %s: %w", j.to.name, err)
	}
	if n == 0 {
		return ErrSealed
	}
	e, err := decode(data)
	switch {
	case err != nil:
		return err
	case e.kind == kindSeal:
		return ErrSealed
	case e.session != j.to.session:
		return ErrFenced
	}
	return nil
}

// Start returns the position at which the log starts.
func (j *Journal) Start(ctx context.Context) (at journal.Position, err error) {
	err = j.to.logs.Read(ctx, j.to.name, 0, func(_ uint64, data []byte) error {
		e, err := decode(data)
		if err != nil {
			return err
		}
		at = e.from
		return errStop
	})
	if err != nil && !errors.Is(err, errStop) {
		return 0, fmt.Errorf("read where the log %s begins: %w", j.to.name, err)
	}
	return at, nil
}

var errStop = errors.New("the rest is not needed")
