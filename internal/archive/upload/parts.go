package upload

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"kumo/internal/archive/away"
	"kumo/internal/state/store"
)

// mostUnsent is by how much lists grow before parts of them are brought, though no WARC file is.
const mostUnsent = 64 << 20

// Durable says how long files that grow are, up to where they stay as they are. Whatever is closed later has its lines
// before that. It does not wait.
func (u *Uploader) Durable(marks []store.Mark) {
	u.mu.Lock()
	defer u.mu.Unlock()
	grown := int64(0)
	for _, m := range marks {
		if slices.Contains(u.cfg.Grow, m.Name) {
			u.durable[m.Name] = m.Length
			grown += m.Length - u.sent[m.Name]
		}
	}
	if grown > mostUnsent && !u.due {
		u.due = true
		u.Look()
	}
}

// partsDue reports whether lists have grown by so much that they are not to wait for a WARC file.
func (u *Uploader) partsDue() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.due
}

// bringParts brings to the place what lists have grown by. It comes before WARC files that were found to be closed, so
// that the place names none of which it has not the lines.
func (u *Uploader) bringParts(ctx context.Context) error {
	u.mu.Lock()
	lengths := map[string]int64{}
	for name, length := range u.durable {
		if length > u.sent[name] {
			lengths[name] = length
		}
	}
	u.mu.Unlock()
	var came []away.Entry
	for _, name := range u.cfg.Grow {
		to := lengths[name]
		if to == 0 {
			continue
		}
		e, err := u.bringPart(ctx, name, to)
		if away.IsMissing(err) { // somebody has moved it away
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if e.Name != "" {
			came = append(came, e)
		}
	}
	if err := u.note(came...); err != nil { // all lists reach up to the same moment
		return err
	}
	for _, e := range came {
		if list, _, is := away.PartOf(e.Name); is {
			u.joins[list] = true
		} else {
			u.joins[e.Name] = true
		}
	}
	if len(came) > 0 {
		u.named, u.last = false, time.Now()
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	for name, length := range lengths {
		u.sent[name] = length
	}
	u.due = false
	return nil
}

// bringPart brings a list up to a length: what the place has not, or all of it if that is not its continuation.
func (u *Uploader) bringPart(ctx context.Context, name string, to int64) (e away.Entry, err error) {
	src, err := u.cfg.Disk.OpenAt(u.path(name))
	if err != nil {
		return e, err
	}
	defer func() { _ = src.Close() }() // it is only read
	from := u.there.Length(name)
	at := away.PartName(name, from)
	if from > 0 {
		joins, known := u.joins[name]
		if !known {
			if joins, err = u.continues(ctx, name, src); err != nil {
				return e, err
			}
			u.joins[name] = joins
		}
		if !joins { // until it is noted
			from, at = 0, name
		}
	}
	if from >= to {
		return e, nil
	}
	part := io.NewSectionReader(src, from, to-from)
	sum, err := digestOf(part)
	if err == nil {
		err = u.put(ctx, at, part, to-from, sum)
	}
	return away.Entry{Name: at, Size: to - from, SHA256: hex.EncodeToString(sum[:]), Time: time.Now().UTC()}, err
}

// tailSize is how much of a list's end in the place is compared with what is here.
const tailSize = 64 << 10

// continues reports whether a list goes on from what the place has of it: a crawl may have been repaired meanwhile.
func (u *Uploader) continues(ctx context.Context, name string, src io.ReaderAt) (bool, error) {
	parts := u.there.Parts(name)
	last := parts[len(parts)-1]
	n := min(last.Size, tailSize)
	in, err := u.cfg.Place.Open(ctx, last.Name, last.Size-n, n)
	if away.IsMissing(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	there, err := io.ReadAll(in)
	if err = errors.Join(err, in.Close()); err != nil {
		return false, err
	}
	here := make([]byte, n)
	if _, err := src.ReadAt(here, u.there.Length(name)-n); errors.Is(err, io.EOF) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	return bytes.Equal(there, here), nil
}

// dropParts removes from the place what lists have left there in parts that are whole by now, and have not grown since.
// What stays does no harm.
func (u *Uploader) dropParts(ctx context.Context) {
	for _, name := range u.complete {
		if len(u.there.Parts(name)) > 1 {
			continue
		}
		_ = u.cfg.Place.Remove(ctx, away.PartsDir+"/"+name)
	}
	u.complete = nil
}
