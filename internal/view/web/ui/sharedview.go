package ui

import (
	"context"
	"slices"
	"sync"
	"time"

	"kumo/internal/app/inspect"
)

// A sharedView is the open view of a crawl, shared by all requests. The first opens it; it is closed some time after
// the last. If the crawl is stopped, it is also closed when the crawl needs its folder.
type sharedView struct {
	open     func(context.Context) (*inspect.View, error)
	wanted   func() bool // may be nil
	done     context.Context
	idleList *idleList
	opening  chan struct{} // held while a view is opened

	mu        sync.Mutex // guards the fields below
	view      *inspect.View
	users     int
	idle      *time.Timer        // closes an unused view
	lines     *inspect.LineIndex // index of lines in the crawl's files; may be nil
	linesUsed time.Time          // last use of lines by a view that is closed
}

// idleFor is how long an unused view stays open. A view of a stopped crawl keeps the crawl from starting.
const idleFor = 3 * time.Second

// linesFor is how long the index of lines is retained after its last use.
const linesFor = time.Minute

// closePatience bounds the wait for an idle view to close; its disk may hang.
const closePatience = 100 * time.Millisecond

// use calls f with a view of the crawl. If f reports that the crawl is unreachable, the next call opens another view.
func (s *sharedView) use(ctx context.Context, f func(*inspect.View) error) error {
	v, err := s.acquire(ctx)
	if err != nil {
		return err
	}
	err = f(v)
	s.release(v, isUnreachable(err))
	return err
}

// acquire returns the open view or opens one: one call at a time, without the lock, as a disk may hang.
func (s *sharedView) acquire(ctx context.Context) (*inspect.View, error) {
	select {
	case s.opening <- struct{}{}:
		defer func() { <-s.opening }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if v, err := s.acquireOpen(s.wanted != nil && s.wanted()); v != nil || err != nil {
		return v, err
	}
	v, err := s.open(ctx)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done.Err() != nil {
		_ = v.Close() // opened for reading only
		return nil, inspect.ErrUnreachable
	}
	if s.lines == nil {
		s.lines, s.linesUsed = &inspect.LineIndex{}, time.Now()
		time.AfterFunc(linesFor, s.dropLines)
	}
	v.UseLines(s.lines)
	s.view = v
	s.addUser()
	return v, nil
}

// acquireOpen returns the open view, if any. A view of a stopped crawl is closed if the crawl needs its folder:
// otherwise frequent requests would keep it from starting.
func (s *sharedView) acquireOpen(wanted bool) (*inspect.View, error) {
	var old *inspect.View
	defer func() { closeView(old) }() // without the lock
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done.Err() != nil {
		return nil, inspect.ErrUnreachable
	}
	if s.view != nil && !s.view.Running() && wanted {
		if s.users > 0 {
			return nil, inspect.ErrUnreachable
		}
		old = s.detach()
	}
	if s.view != nil {
		s.addUser()
	}
	return s.view, nil
}

// addUser counts a user of the view. The caller holds the lock.
func (s *sharedView) addUser() {
	if s.idle != nil {
		s.idle.Stop()
		s.idle = nil
	}
	s.users++
}

// release ends a use of a view; gone: it has failed and must not be used again.
func (s *sharedView) release(v *inspect.View, gone bool) {
	if s.dropUser(v, gone) {
		if other := s.idleList.add(s); other != nil {
			closed := make(chan struct{})
			go func() {
				defer close(closed)
				other.dropIdle()
			}()
			select {
			case <-closed:
			case <-time.After(closePatience): // its disk hangs
			}
		}
	}
}

// dropUser reports whether the view became idle and stays open.
func (s *sharedView) dropUser(v *inspect.View, gone bool) bool {
	var old *inspect.View
	defer func() { closeView(old) }() // without the lock
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users--
	switch {
	case v != s.view || s.users > 0:
		return false
	case gone || s.done.Err() != nil:
		old = s.detach()
		return false
	}
	s.idle = time.AfterFunc(idleFor, s.dropIdle)
	return true
}

// dropIdle closes the view if it is unused.
func (s *sharedView) dropIdle() {
	s.mu.Lock()
	var old *inspect.View
	if s.users == 0 {
		old = s.detach()
	}
	s.mu.Unlock()
	closeView(old)
}

// dropLines drops the index of lines if it was not used for a while, even if a view is open.
func (s *sharedView) dropLines() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.view != nil {
		s.recordUse(s.view)
	}
	again := max(linesFor-time.Since(s.linesUsed), time.Second)
	switch {
	case s.done.Err() != nil:
		s.lines.Close()
		return
	case time.Since(s.linesUsed) < linesFor || s.users > 0:
	case s.view == nil:
		s.lines.Close()
		s.lines = nil
		return
	default: // the view's next user creates a new one
		s.lines.Close()
		s.lines, again = &inspect.LineIndex{}, linesFor
		s.view.UseLines(s.lines)
	}
	time.AfterFunc(again, s.dropLines)
}

// recordUse records when a view last searched for lines. The caller holds the lock.
func (s *sharedView) recordUse(v *inspect.View) {
	if at := v.LastLineQuery(); at.After(s.linesUsed) {
		s.linesUsed = at
	}
}

// An idleList contains the views that became idle last.
type idleList struct {
	mu  sync.Mutex // guards all
	all []*sharedView
}

// maxIdle is the maximum number of idle views, however many crawls there are: each uses files and memory.
const maxIdle = 8

// add adds an idle view and returns another view that must be closed for it, or nil.
func (l *idleList) add(s *sharedView) (other *sharedView) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(slices.DeleteFunc(l.all, func(o *sharedView) bool { return o == s }), s)
	if len(l.all) > maxIdle {
		other, l.all = l.all[0], slices.Delete(l.all, 0, 1)
	}
	return other
}

// detach returns the open view, for the caller to close without the lock, or nil. The caller holds the lock.
func (s *sharedView) detach() *inspect.View {
	v := s.view
	if v != nil {
		s.recordUse(v)
	}
	s.view = nil
	return v
}

// closeView closes a detached view.
func closeView(v *inspect.View) {
	if v != nil {
		_ = v.Close() // opened for reading only
	}
}

func (s *sharedView) close() {
	s.mu.Lock()
	if s.lines != nil {
		s.lines.Close()
	}
	s.mu.Unlock()
	s.dropIdle()
}
