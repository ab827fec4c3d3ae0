package inspect

import (
	"context"
	"net/http"

	"kumo/internal/base/stats"
)

// A Curver says how the counters of a crawl that runs went.
type Curver interface {
	Curves(ctx context.Context) (*stats.Curves, error)
}

func (s *Server) curves(mux *http.ServeMux) {
	src, can := s.src.(Curver)
	if !can {
		return
	}
	mux.HandleFunc("GET /curves", func(w http.ResponseWriter, r *http.Request) {
		answer(w, r, func(yield func(*stats.Curves, error) bool) { yield(src.Curves(r.Context())) })
	})
}

var _ Curver = (*Client)(nil)

// Curves is Curver's.
func (c *Client) Curves(ctx context.Context) (*stats.Curves, error) {
	for x, err := range ask[*stats.Curves](ctx, c, http.MethodGet, "curves") {
		return x, err
	}
	return nil, ErrGone
}
