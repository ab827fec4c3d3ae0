package ui

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"time"
)

// A hub polls a state periodically and sends it to all open pages. It polls only while pages listen.
type hub struct {
	interval time.Duration
	done     context.Context
	// poll returns the data to send, or nil, and whether more will follow
	poll func(context.Context) (data []byte, more bool)

	mu        sync.Mutex // guards the fields below
	listeners map[chan []byte]bool
	polling   bool
}

const (
	hubInterval = time.Second
	listenTime  = time.Hour        // after which a browser reconnects
	eventTime   = 10 * time.Second // for a client that does not read
	evictTime   = time.Second      // for an evicted stream's last line

	eventBuffer = 16 << 10 // bytes of a stream that the system buffers for a client that does not read
)

// An event contains the values that change while a page is open.
type event struct {
	Live  map[string]string `json:"live"`
	Words []Word            `json:"words"`
	Runs  bool              `json:"runs"`
}

// eventStreams limits the event streams of all crawls, and ends them with done.
type eventStreams struct {
	done  context.Context
	slots *slots
}

// listen streams events until the crawl ends or the client disconnects. If the crawl is not running, it sends an event
// with that state. If the crawl does not answer, it sends nothing: browsers reconnect.
func (h *crawlPages) listen(w http.ResponseWriter, r *http.Request) {
	c, err := h.crawls.find(r)
	if err != nil {
		h.out.fail(w, r, err)
		return
	}
	h.streams.send(w, r, c.queue, &c.hub, func(ctx context.Context) (first string, more bool) {
		o, err := withPatience(ctx, c.queue, eventTime, c.status.overview)
		if err == nil && !o.runs() {
			first = `data: {"runs":false}` + "\n\n"
		}
		return first, err == nil && o.runs()
	})
}

var errEvicted = errors.New("replaced by the stream of a newer page")

// send streams a hub's events to a client if begin reports that more will follow. Over the limit, a new stream evicts
// the oldest, whose browser reconnects after a while.
func (s *eventStreams) send(w http.ResponseWriter, r *http.Request, q *queue, h *hub,
	begin func(context.Context) (first string, more bool)) {
	stream, end := context.WithCancelCause(r.Context())
	defer end(nil)
	for _, all := range []*slots{q.events, s.slots} {
		defer all.release(all.acquire(r.RemoteAddr, func() { end(errEvicted) }))
	}
	shrinkBuffer(r)
	ctx, cancel := context.WithTimeout(stream, eventTime)
	first, more := begin(ctx)
	cancel()
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	_ = out.SetWriteDeadline(time.Now().Add(eventTime))
	if _, err := w.Write([]byte("retry: 3000\n\n" + first)); err != nil || out.Flush() != nil || !more {
		return
	}
	news := h.subscribe()
	defer h.unsubscribe(news)
	over := time.NewTimer(listenTime)
	defer over.Stop()
	for {
		select {
		case data, more := <-news:
			_ = out.SetWriteDeadline(time.Now().Add(eventTime))
			if !more {
				return
			}
			if _, err := w.Write(append(append([]byte("data: "), data...), "\n\n"...)); err != nil || out.Flush() != nil {
				return
			}
		case <-over.C:
			return
		case <-s.done.Done():
			return
		case <-stream.Done():
			if errors.Is(context.Cause(stream), errEvicted) {
				_ = out.SetWriteDeadline(time.Now().Add(evictTime))
				_, _ = w.Write([]byte("retry: 15000\n\n")) // the stream ends in any case
			}
			return
		}
	}
}

func (h *hub) subscribe() chan []byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.listeners == nil {
		h.listeners = map[chan []byte]bool{}
	}
	news := make(chan []byte, 1)
	h.listeners[news] = true
	if !h.polling {
		h.polling = true
		go h.run()
	}
	return news
}

func (h *hub) unsubscribe(news chan []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.listeners, news)
}

// run polls periodically, as long as pages listen and there is something to send.
func (h *hub) run() {
	tick := time.NewTicker(h.interval)
	defer tick.Stop()
	for h.pollOnce() {
		select {
		case <-tick.C:
		case <-h.done.Done():
		}
	}
}

func (h *hub) pollOnce() (more bool) {
	ctx, cancel := context.WithTimeout(h.done, eventTime)
	data, runs := h.poll(ctx)
	cancel()
	h.mu.Lock()
	defer h.mu.Unlock()
	for news := range h.listeners {
		if data != nil {
			select {
			case news <- data:
			default: // the client has not read the last event yet
			}
		}
		if !runs {
			close(news)
		}
	}
	if !runs || h.done.Err() != nil {
		h.listeners = nil
	}
	h.polling = len(h.listeners) > 0
	return h.polling
}

// event returns an overview as an event.
func (c *crawl) event(ctx context.Context) (data []byte, more bool) {
	o, err := c.status.overview(ctx)
	if err != nil {
		return nil, false
	}
	data, err = json.Marshal(event{liveValues(o), o.Words, o.runs()})
	return data, err == nil && o.runs()
}
