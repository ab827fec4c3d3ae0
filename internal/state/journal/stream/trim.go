package stream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"

	"kumo/internal/state/journal"
)

// A mark is an entry of the log with which it has the journal up to a position.
type mark struct {
	number uint64
	end    journal.Position
	sent   int64 // bytes of entries up to it that this process has added
}

// maxMarks bounds how many are kept: beyond that every second one is forgotten, and less is trimmed than could be.
const maxMarks = 4096

// addMark marks the entry that was added last. It is called with mu held, by the one who ships.
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

// markBefore is the last mark at or before a position; the first one, which is that of all that was trimmed, if there is
// none.
func (j *Journal) markBefore(at journal.Position) (int, mark) {
	i := max(sort.Search(len(j.marks), func(i int) bool { return j.marks[i].end > at })-1, 0)
	return i, j.marks[i]
}

// Trimmable is how many bytes of the log Trim would let go of, as far as this process has written them.
func (j *Journal) Trimmable(before journal.Position) int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	_, m := j.markBefore(before)
	return m.sent - j.marks[0].sent
}

// Trim lets go of what the log has of the journal before a position: of whole entries, and not of the last one. Who
// reads it from then on begins there.
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

// CheckOwner returns nil if the log's last entry is this one's: [ErrSealed] or [ErrFenced] if it was closed, removed, or
// opened by another since.
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

// Start is from where on the log has the journal.
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
