package ui

import (
	"context"
	"encoding/json"
	"net/http"
	"time"
)

// A hub tells all pages that are open of a crawl, once a second, what one look has found. It looks as long as somebody
// listens. Its crawl's lock guards it.
type hub struct {
	listeners map[chan []byte]bool
	looking   bool
}

const (
	every      = time.Second
	listenTime = time.Hour        // after which a browser asks anew
	eventTime  = 10 * time.Second // until who does not read is left
)

// An event is what changes while a page is open.
type event struct {
	Live  map[string]string `json:"live"`
	Words []Word            `json:"words"`
	Runs  bool              `json:"runs"`
}

// listen answers with events until the crawl ends, or nobody reads. Of a crawl that does not run it says so, and of one
// that does not say how it stands nothing: browsers ask again.
func (s *Server) listen(w http.ResponseWriter, r *http.Request) {
	c, err := s.of(r)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	select {
	case s.events <- struct{}{}:
		defer func() { <-s.events }()
	default:
		s.fail(w, r, &problem{http.StatusServiceUnavailable, "Too many pages are kept up to date", "close one, and load this one again"})
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), eventTime)
	o, err := c.overview(ctx)
	cancel()
	first := "retry: 3000\n\n"
	if err == nil && !o.runs() {
		first += `data: {"runs":false}` + "\n\n"
	}
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	_ = out.SetWriteDeadline(time.Now().Add(eventTime))
	if _, werr := w.Write([]byte(first)); werr != nil || out.Flush() != nil || err != nil || !o.runs() {
		return
	}
	news := c.subscribe()
	defer c.unsubscribe(news)
	end := time.NewTimer(listenTime)
	defer end.Stop()
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
		case <-end.C:
			return
		case <-s.done.Done():
			return
		case <-r.Context().Done():
			return
		}
	}
}

func (c *crawl) subscribe() chan []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hub.listeners == nil {
		c.hub.listeners = map[chan []byte]bool{}
	}
	news := make(chan []byte, 1)
	c.hub.listeners[news] = true
	if !c.hub.looking {
		c.hub.looking = true
		go c.tell()
	}
	return news
}

func (c *crawl) unsubscribe(news chan []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.hub.listeners, news)
}

// tell looks once a second, as long as somebody listens and the crawl runs.
func (c *crawl) tell() {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for c.tellOnce() {
		select {
		case <-tick.C:
		case <-c.done.Done():
		}
	}
}

func (c *crawl) tellOnce() (more bool) {
	ctx, cancel := context.WithTimeout(c.done, eventTime)
	o, err := c.overview(ctx)
	cancel()
	e := event{Words: []Word{}}
	if err == nil {
		e = event{live(o), o.Words, o.runs()}
	}
	data, jsonErr := json.Marshal(e)
	c.mu.Lock()
	defer c.mu.Unlock()
	for news := range c.hub.listeners {
		if err == nil && jsonErr == nil {
			select {
			case news <- data:
			default: // it has not read the last one yet
			}
		}
		if !e.Runs {
			close(news)
		}
	}
	if !e.Runs || c.done.Err() != nil {
		c.hub.listeners = nil
	}
	c.hub.looking = len(c.hub.listeners) > 0
	return c.hub.looking
}
