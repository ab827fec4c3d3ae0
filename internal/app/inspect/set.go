package inspect

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
)

// A Setting is a setting of the crawl by its key; without values it is as by default.
type Setting struct {
	Key    string   `json:"key"`
	Values []string `json:"values"`
	// Was is what it has to be for the change to be made; nil: whatever it is.
	Was []string `json:"was,omitzero"`
}

// ErrChanged is the error of changes of settings that are not what they had to be.
var ErrChanged = errors.New("somebody else has changed the same settings meanwhile: try again")

// A Setter changes settings of a crawl that runs, all of them or none.
type Setter interface {
	Set(ctx context.Context, changes []Setting) (was []Setting, err error)
}

const tries = 10 // until changes are given up that others' come before each time

// Tune makes the changes that f makes of the settings that there are, which read reads. Both are called again when
// somebody else has changed the same ones meanwhile.
func Tune(ctx context.Context, s Setter, read func() (map[string][]string, error),
	f func(now map[string][]string) ([]Setting, error)) (changes, was []Setting, err error) {
	for range tries {
		now, err := read()
		if err != nil {
			return nil, nil, err
		}
		if changes, err = f(now); err != nil {
			return nil, nil, err
		}
		for i := range changes {
			changes[i].Was = append([]string{}, now[changes[i].Key]...)
		}
		if was, err = s.Set(ctx, changes); !errors.Is(err, ErrChanged) {
			return changes, was, err
		}
	}
	return nil, nil, ErrChanged
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
		if err != nil && err.Error() == ErrChanged.Error() {
			err = ErrChanged
		}
		return was, err
	}
	return nil, ErrGone
}
