package inspect

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"time"
)

// A Copied says how far a snapshot is.
type Copied struct {
	Files int   `json:"files"`
	Bytes int64 `json:"bytes"`           // copied, or shared with the crawl's folder by hard links
	Total int64 `json:"total,omitempty"` // of them, as far as it is known
}

// A Snapshooter copies the folder of a crawl that runs, as it is at one moment, into a new folder.
type Snapshooter interface {
	Snapshot(ctx context.Context, target string) iter.Seq2[Copied, error] // how far it is, again and again
}

// snapshot writes: hence the other method.
func (s *Server) snapshot(mux *http.ServeMux) {
	src, can := s.src.(Snapshooter)
	if !can {
		return
	}
	mux.HandleFunc("POST /snapshot", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/jsonl")
		out, enc := http.NewResponseController(w), json.NewEncoder(w)
		last := line[Copied]{End: true}
		for v, err := range src.Snapshot(r.Context(), r.FormValue("target")) {
			if err != nil {
				last = line[Copied]{Error: err.Error()}
				break
			}
			_ = out.SetWriteDeadline(time.Now().Add(writeWait)) // without one it is the reader who decides
			if enc.Encode(line[Copied]{Value: v}) != nil || out.Flush() != nil {
				return // which ends the snapshot
			}
		}
		_ = out.SetWriteDeadline(time.Now().Add(writeWait))
		_ = enc.Encode(last) // who does not get it knows that something is missing
	})
}

var _ Snapshooter = (*Client)(nil)

// Snapshot is Snapshooter's.
func (c *Client) Snapshot(ctx context.Context, target string) iter.Seq2[Copied, error] {
	return ask[Copied](ctx, c, http.MethodPost, "snapshot", "target", target)
}
