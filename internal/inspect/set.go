package inspect

import (
	"context"
	"encoding/json"
	"net/http"
)

// A Setting is a setting of the crawl by its key; without values it is as by default.
type Setting struct {
	Key    string   `json:"key"`
	Values []string `json:"values"`
}

// A Setter changes settings of a crawl that runs, all of them or none.
type Setter interface {
	Set(ctx context.Context, changes []Setting) (was []Setting, err error)
}

const maxSettings = 128 << 20 // bytes of a question

// set is asked by another method than what only looks.
func (s *Server) set(mux *http.ServeMux) {
	src, can := s.src.(Setter)
	if !can {
		return
	}
	mux.HandleFunc("POST /set", func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, maxSettings)
		answer(w, r, func(yield func([]Setting, error) bool) {
			var changes []Setting
			if err := json.NewDecoder(r.Body).Decode(&changes); err != nil {
				yield(nil, err)
				return
			}
			yield(src.Set(r.Context(), changes))
		})
	})
}

var _ Setter = (*Client)(nil)

// Set is Setter's.
func (c *Client) Set(ctx context.Context, changes []Setting) ([]Setting, error) {
	body, err := json.Marshal(changes)
	if err != nil {
		return nil, err
	}
	for was, err := range askWith[[]Setting](ctx, c, http.MethodPost, "set", body) {
		return was, err
	}
	return nil, ErrGone
}
