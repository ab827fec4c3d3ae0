package ui

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"

	"kumo/internal/app/inspect"
	"kumo/internal/app/lookup"
	"kumo/internal/archive/fulltext"
)

// A problem is an error in the form of RFC 9457.
type problem struct {
	Status int    `json:"status"`
	Title  string `json:"title"`
	Detail string `json:"detail,omitempty"`
}

func (p *problem) Error() string { return p.Title + ": " + p.Detail }

func badRequest(format string, args ...any) error {
	return &problem{http.StatusBadRequest, "The request is invalid", fmt.Sprintf(format, args...)}
}

// noURL returns the error for a text that is not a page's URL.
func noURL(text string) error {
	return badRequest("%q is not a URL: it must begin with http:// or https:// and a host", cut(text, 200))
}

// problemOf converts an error to a problem.
func problemOf(err error) *problem {
	var p *problem
	switch {
	case errors.As(err, &p):
		return p
	case errors.Is(err, lookup.ErrNoRecord), errors.Is(err, lookup.ErrNoAnswer):
		return &problem{http.StatusNotFound, "Not in the archive", err.Error()}
	case errors.Is(err, fulltext.ErrNoIndex):
		return &problem{http.StatusNotFound, "There is no index",
			"kumo index, with the crawl's folder, creates one; kumo crawl --index does so during the crawl"}
	case fulltext.IsDamaged(err):
		return &problem{http.StatusServiceUnavailable, "The index cannot be read", err.Error() +
			"; kumo index, with the crawl's folder, rebuilds it"}
	case errors.Is(err, inspect.ErrUnreachable):
		return &problem{http.StatusServiceUnavailable, "The crawl does not answer",
			"it is starting or ending: try again in a moment"}
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return &problem{http.StatusServiceUnavailable, "It took too long", "request less, or try again in a moment"}
	}
	return &problem{http.StatusInternalServerError, "The query failed", err.Error()}
}

// A responder writes pages and errors. Its fields do not change; any goroutine may use it.
type responder struct {
	log  *slog.Logger
	json bool // errors are JSON for every path: Config.Only is served
	many bool // there are several crawls
	// users may start crawls
	starts bool
}

// fail writes an error: as JSON for programs, as a page for users.
func (out *responder) fail(w http.ResponseWriter, r *http.Request, err error) {
	out.failUnder(w, r, err, out.top(nil, "", ""))
}

// failUnder is like fail with the given page head.
func (out *responder) failUnder(w http.ResponseWriter, r *http.Request, err error, head top) {
	p := problemOf(err)
	if p.Status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "2")
	}
	if !out.json && !strings.HasPrefix(r.URL.Path, "/api/") {
		head.Title = p.Title
		out.render(w, p.Status, "problem", struct {
			top
			Problem *problem
		}{head, p})
		return
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // the client may have disconnected
}
