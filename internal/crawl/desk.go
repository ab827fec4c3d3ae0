package crawl

import (
	"runtime"
	"sync"

	"kumo/internal/page"
)

// Most workers wait for a server. What it takes to receive an answer they get when one begins to come, and what it takes to read it when a
// processor is free: a thousand at work need little more memory than ten.

// A desk is where answers are read, one after the other.
type desk struct {
	parser Parser
	page   page.Page
	body   []byte
}

// An office has the desks, and the room for answers that come.
type office struct {
	newParser func() Parser
	places    chan struct{} // held by who sits at a desk

	mu    sync.Mutex
	desks []*desk        // free ones; the last was used last
	rooms []page.Buffers // the same
}

const (
	desksPerProcessor = 4   // readers wait for locks and disks at times
	maxRooms          = 128 // at rest
)

func newOffice(newParser func() Parser) *office {
	return &office{newParser: newParser, places: make(chan struct{}, desksPerProcessor*runtime.GOMAXPROCS(0))}
}

// receive makes room for an answer.
func (w *worker) receive() {
	o := w.office
	o.mu.Lock()
	defer o.mu.Unlock()
	if last := len(o.rooms) - 1; last >= 0 {
		request := w.resp.Buffers.Request
		w.resp.Buffers, o.rooms = o.rooms[last], o.rooms[:last]
		w.resp.Buffers.Request = request
	}
}

// sit waits for a desk.
func (w *worker) sit() {
	o := w.office
	o.places <- struct{}{}
	o.mu.Lock()
	if last := len(o.desks) - 1; last >= 0 {
		w.desk, o.desks = o.desks[last], o.desks[:last]
	}
	o.mu.Unlock()
	if w.desk == nil {
		w.desk = &desk{parser: o.newParser()}
	}
	w.seated = true
	w.resp.Buffers.Body = w.body
}

// stand leaves the place at a desk, but not yet what lies on it: what follows may take its time without a processor.
func (w *worker) stand() {
	if w.seated {
		w.seated = false
		<-w.office.places
	}
}

// rise gives back what the visit has used.
func (w *worker) rise() {
	o, room := w.office, w.resp.Buffers
	if w.desk != nil {
		w.body, room.Body = room.Body, nil
		if cap(w.body) > maxBody {
			w.body = nil
		}
		if cap(w.page.Links) > maxKept {
			w.page.Links = nil
		}
	}
	room.Empty()
	w.resp = page.Response{Buffers: page.Buffers{Request: room.Request}}
	room.Request = nil
	o.mu.Lock()
	if cap(room.Raw) > 0 && len(o.rooms) < maxRooms {
		o.rooms = append(o.rooms, room)
	}
	if w.desk != nil && len(o.desks) < cap(o.places) {
		o.desks = append(o.desks, w.desk)
	}
	o.mu.Unlock()
	w.desk = nil
	w.stand()
}

// maxBody is how large a body's buffer may be that is used again.
const maxBody = 512 << 10
