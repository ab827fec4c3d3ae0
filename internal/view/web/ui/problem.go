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

// A problem is what went wrong, as RFC 9457 has it.
type problem struct {
	Status int    `json:"status"`
	Title  string `json:"title"`
	Detail string `json:"detail,omitempty"`
}

func (p *problem) Error() string { return p.Title + ": " + p.Detail }

func badRequest(format string, args ...any) error {
	return &problem{http.StatusBadRequest, "The question is not right", fmt.Sprintf(format, args...)}
}

// noURL is the error of a text that is no URL of a page.
func noURL(text string) error {
	return badRequest("%q is no URL: it begins with http:// or https:// and a host", cut(text, 200))
}

// problemOf says how an error is told.
func problemOf(err error) *problem {
	var p *problem
	switch {
	case errors.As(err, &p):
		return p
	case errors.Is(err, lookup.ErrNoRecord), errors.Is(err, lookup.ErrNoAnswer):
		return &problem{http.StatusNotFound, "Not in the archive", err.Error()}
	case errors.Is(err, fulltext.ErrNoIndex):
		return &problem{http.StatusNotFound, "There is no index",
			"kumo index, with the crawl's folder, makes one; kumo crawl --index does while it crawls"}
	case fulltext.IsDamaged(err):
		return &problem{http.StatusServiceUnavailable, "The index cannot be read", err.Error() +
			"; kumo index, with the crawl's folder, makes it anew"}
	case errors.Is(err, inspect.ErrUnreachable):
		return &problem{http.StatusServiceUnavailable, "The crawl does not answer",
			"it is just starting or ending: ask again in a moment"}
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return &problem{http.StatusServiceUnavailable, "It takes too long", "ask for less, or again in a moment"}
	}
	return &problem{http.StatusInternalServerError, "The crawl cannot say", err.Error()}
}

// A responder writes pages and errors. Its fields do not change; any goroutine may use it.
type responder struct {
	log  *slog.Logger
	json bool // errors are JSON whatever the path: Config.Only is served
	many bool // several crawls are shown
}

// fail tells an error: a program as JSON, a person as a page.
func (out *responder) fail(w http.ResponseWriter, r *http.Request, err error) {
	out.failUnder(w, r, err, out.top(nil, "", ""))
}

// failUnder is fail with the head that a page has.
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
	_ = json.NewEncoder(w).Encode(p) // who asked may have gone
}
