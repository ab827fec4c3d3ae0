package inspect

import (
	"encoding/json"
	"iter"
	"net/http"
	"strconv"
	"time"
)

// An answer is a sequence of lines of JSON: each has a value, and the last says that it was all, or what went wrong.
type line[T any] struct {
	Value T      `json:"value,omitzero"`
	End   bool   `json:"end,omitempty"`
	Error string `json:"error,omitempty"`
}

func (s *Server) mux() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(http.ResponseWriter, *http.Request) {}) // here is somebody, who knows the token
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, r *http.Request) {
		answer(w, r, func(yield func(*Status, error) bool) { yield(s.src.Status(r.Context())) })
	})
	mux.HandleFunc("GET /explain", func(w http.ResponseWriter, r *http.Request) {
		answer(w, r, func(yield func(*Explanation, error) bool) { yield(s.src.Explain(r.Context(), r.FormValue("url"))) })
	})
	mux.HandleFunc("GET /hosts", func(w http.ResponseWriter, r *http.Request) {
		answer(w, r, s.src.Hosts(r.Context(), number(r)))
	})
	mux.HandleFunc("GET /queue", func(w http.ResponseWriter, r *http.Request) {
		answer(w, r, s.src.Queue(r.Context(), r.FormValue("host"), number(r)))
	})
	mux.HandleFunc("GET /seen", func(w http.ResponseWriter, r *http.Request) {
		answer(w, r, s.src.Seen(r.Context(), r.FormValue("prefix"), number(r)))
	})
	mux.HandleFunc("GET /hosts-from", func(w http.ResponseWriter, r *http.Request) {
		answer(w, r, s.src.HostsFrom(r.Context(), r.FormValue("prefix"), r.FormValue("after"), number(r)))
	})
	mux.HandleFunc("GET /seen-from", func(w http.ResponseWriter, r *http.Request) {
		answer(w, r, s.src.SeenFrom(r.Context(), r.FormValue("prefix"), r.FormValue("after"), number(r)))
	})
	mux.HandleFunc("GET /top", func(w http.ResponseWriter, r *http.Request) {
		answer(w, r, s.src.Top(r.Context(), number(r), r.FormValue("sites") == "true"))
	})
	s.snapshot(mux)
	s.set(mux)
	s.curves(mux)
	s.steer(mux)
	s.blocked(mux)
	return mux
}

// number is how many are asked for; none if it is no number.
func number(r *http.Request) int {
	n, _ := strconv.Atoi(r.FormValue("n"))
	return n
}

// answer writes values until they end, the crawl does, or nobody reads.
func answer[T any](w http.ResponseWriter, r *http.Request, values iter.Seq2[T, error]) {
	w.Header().Set("Content-Type", "application/jsonl")
	out, enc := http.NewResponseController(w), json.NewEncoder(w)
	last := line[T]{End: true}
	n := 0
	for v, err := range values {
		if err == nil {
			err = r.Context().Err()
		}
		if err != nil {
			last = line[T]{Error: err.Error()}
			break
		}
		if n++; n%100 == 1 {
			_ = out.SetWriteDeadline(time.Now().Add(writeWait)) // without one it is the reader who decides
		}
		if enc.Encode(line[T]{Value: v}) != nil {
			return
		}
	}
	_ = enc.Encode(last) // who does not get it knows that something is missing
}
