package inspect

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
)

// A Steerer has a crawl that runs do something.
type Steerer interface {
	// fetch nothing new while it is on; what is under way goes on
	Pause(ctx context.Context, on bool) error
	Stop(ctx context.Context) error                               // end in order, as Ctrl-C has it
	Add(ctx context.Context, urls []string) (news int, err error) // begin with these, too; durable when it returns
}

const maxAdded = 16 << 20 // bytes of a question with URLs

// steer is asked by another method than what only looks.
func (s *Server) steer(mux *http.ServeMux) {
	src, can := s.src.(Steerer)
	if !can {
		return
	}
	done := func(w http.ResponseWriter, r *http.Request, err error) {
		answer(w, r, func(yield func(bool, error) bool) { yield(true, err) })
	}
	mux.HandleFunc("POST /pause", func(w http.ResponseWriter, r *http.Request) {
		done(w, r, src.Pause(r.Context(), r.FormValue("on") == "true"))
	})
	mux.HandleFunc("POST /stop", func(w http.ResponseWriter, r *http.Request) { done(w, r, src.Stop(r.Context())) })
	mux.HandleFunc("POST /add", func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, maxAdded)
		answer(w, r, func(yield func(int, error) bool) {
			var urls []string
			if err := json.NewDecoder(r.Body).Decode(&urls); err != nil {
				yield(0, err)
				return
			}
			yield(src.Add(r.Context(), urls))
		})
	})
}

var _ Steerer = (*Client)(nil)

// Pause is Steerer's.
func (c *Client) Pause(ctx context.Context, on bool) error {
	return c.do(ctx, "pause", "on", strconv.FormatBool(on))
}

// Stop is Steerer's.
func (c *Client) Stop(ctx context.Context) error { return c.do(ctx, "stop") }

func (c *Client) do(ctx context.Context, verb string, fields ...string) error {
	for _, err := range ask[bool](ctx, c, http.MethodPost, verb, fields...) {
		return err
	}
	return ErrGone
}

// Add is Steerer's.
func (c *Client) Add(ctx context.Context, urls []string) (int, error) {
	body, err := json.Marshal(urls)
	if err != nil {
		return 0, err
	}
	for n, err := range askWith[int](ctx, c, http.MethodPost, "add", body) {
		return n, err
	}
	return 0, ErrGone
}
