package inspect

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"strconv"
	"time"

	"kumo/internal/base/stats"
)

// A response is a sequence of lines of JSON. Each has a value; the last one marks the end, or has an error.
type line[T any] struct {
	Value T      `json:"value,omitzero"`
	End   bool   `json:"end,omitempty"`
	Error string `json:"error,omitempty"`
}

func (s *Server) mux() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(http.ResponseWriter, *http.Request) {}) // for Dial, to check the token
	mux.HandleFunc("GET /status", serveValue(func(r *http.Request) (*Status, error) { return s.src.Status(r.Context()) }))
	mux.HandleFunc("GET /explain", serveValue(func(r *http.Request) (*Explanation, error) {
		return s.src.Explain(r.Context(), r.FormValue("url"))
	}))
	mux.HandleFunc("GET /hosts", func(w http.ResponseWriter, r *http.Request) {
		answer(w, r, s.src.Hosts(r.Context(), number(r)), defaultFlush)
	})
	mux.HandleFunc("GET /queue", func(w http.ResponseWriter, r *http.Request) {
		answer(w, r, s.src.Queue(r.Context(), r.FormValue("host"), number(r)), defaultFlush)
	})
	mux.HandleFunc("GET /seen", func(w http.ResponseWriter, r *http.Request) {
		answer(w, r, s.src.Seen(r.Context(), r.FormValue("prefix"), number(r)), defaultFlush)
	})
	mux.HandleFunc("GET /hosts-from", func(w http.ResponseWriter, r *http.Request) {
		answer(w, r, s.src.HostsFrom(r.Context(), r.FormValue("prefix"), r.FormValue("after"), number(r)), defaultFlush)
	})
	mux.HandleFunc("GET /seen-from", func(w http.ResponseWriter, r *http.Request) {
		answer(w, r, s.src.SeenFrom(r.Context(), r.FormValue("prefix"), r.FormValue("after"), number(r)), defaultFlush)
	})
	mux.HandleFunc("GET /top", func(w http.ResponseWriter, r *http.Request) {
		answer(w, r, s.src.Top(r.Context(), number(r), r.FormValue("sites") == "true"), defaultFlush)
	})
	if src, can := s.src.(CurveReader); can {
		mux.HandleFunc("GET /curves", serveValue(func(r *http.Request) (*stats.Curves, error) {
			return src.Curves(r.Context())
		}))
	}
	if src, can := s.src.(Snapshotter); can { // POST because it writes
		mux.HandleFunc("POST /snapshot", func(w http.ResponseWriter, r *http.Request) {
			answer(w, r, src.Snapshot(r.Context(), r.FormValue("target")), 1)
		})
	}
	if src, can := s.src.(Setter); can {
		mux.Handle("POST /set", serveBody(maxSettings, src.Set))
	}
	if src, can := s.src.(Controller); can {
		mux.HandleFunc("POST /pause", serveValue(func(r *http.Request) (bool, error) {
			return true, src.Pause(r.Context(), r.FormValue("on") == "true")
		}))
		mux.HandleFunc("POST /stop", serveValue(func(r *http.Request) (bool, error) { return true, src.Stop(r.Context()) }))
		mux.Handle("POST /add", serveBody(maxAdded, src.Add))
	}
	if src, can := s.src.(BlockCounter); can { // POST because rules may be long
		mux.Handle("POST /blocked", serveBody(maxRules, src.Blocked))
	}
	return mux
}

// Maximum sizes of request bodies, in bytes.
const (
	maxRules    = 1 << 20
	maxAdded    = 16 << 20 // URLs
	maxSettings = 128 << 20
)

// defaultFlush is the number of values after which a response is flushed.
const defaultFlush = 100

// serveValue returns a handler that responds with one value.
func serveValue[T any](f func(*http.Request) (T, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		answer(w, r, func(yield func(T, error) bool) { yield(f(r)) }, defaultFlush)
	}
}

// serveBody returns a handler that decodes the request body and responds with the result of f.
func serveBody[In, Out any](most int64, f func(context.Context, In) (Out, error)) http.Handler {
	return http.MaxBytesHandler(serveValue(func(r *http.Request) (out Out, err error) {
		var in In
		if err = json.NewDecoder(r.Body).Decode(&in); err != nil {
			return out, err
		}
		return f(r.Context(), in)
	}), most)
}

// number returns the requested number of values; 0 if it is not a number.
func number(r *http.Request) int {
	n, _ := strconv.Atoi(r.FormValue("n"))
	return n
}

// answer writes values until the sequence, the crawl or the connection ends. It flushes after each flush values.
func answer[T any](w http.ResponseWriter, r *http.Request, values iter.Seq2[T, error], flush int) {
	w.Header().Set("Content-Type", "application/jsonl")
	out, enc := http.NewResponseController(w), json.NewEncoder(w)
	last := line[T]{End: true}
	n := 0
	for v, err := range values {
		if err == nil && n > 0 { // a single value, such as that of the command that ends the crawl, is complete
			err = r.Context().Err()
		}
		if err != nil {
			last = line[T]{Error: err.Error()}
			break
		}
		if n%flush == 0 {
			_ = out.SetWriteDeadline(time.Now().Add(writeWait)) // otherwise a slow reader could block the sequence
		}
		if enc.Encode(line[T]{Value: v}) != nil || n%flush == flush-1 && out.Flush() != nil {
			return // ends the sequence
		}
		n++
	}
	_ = out.SetWriteDeadline(time.Now().Add(writeWait))
	_ = enc.Encode(last) // a reader without this line knows that values are missing
}
