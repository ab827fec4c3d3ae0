// Package render defines what a renderer of pages does: it runs a page's scripts, and returns the page as a user sees
// it. Package chromium is the implementation, which only programs that render link.
package render

import (
	"context"
	"errors"
	"net/http"
	"time"

	"kumo/internal/base/page"
)

// A Request is a request of a page.
type Request struct {
	URL    string
	Method string
	Header http.Header // as the page's scripts set it; without the browser's own fields such as cookies
	// Document is true for the page itself, its redirects, and other pages to which its scripts lead; false for
	// resources and frames.
	Document bool
	Type     string // "Document", "Script", "Image", "XHR", …: the protocol's ResourceType
}

// A Response answers a Request. Its body is decoded: without transfer and content codings. Answering a document with
// status 204 leaves the page as it is.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
}

// An Answerer answers the requests of pages. It may be used concurrently. ErrBlocked, also wrapped, means that the
// crawl's rules forbid the request; for the page, any error is a failed connection.
type Answerer func(ctx context.Context, r *Request) (*Response, error)

// ErrBlocked means that a request is not allowed.
var ErrBlocked = errors.New("blocked by the crawl's rules")

// ErrCrashed means that the browser, or the process of the page, has crashed or was killed. The page may be tried
// again.
var ErrCrashed = errors.New("the browser has crashed")

// ErrDocument means that the page itself could not be fetched.
var ErrDocument = errors.New("the page could not be fetched")

// A Result is a rendered page.
type Result struct {
	URL   string // of the document, after redirects and scripts
	Title string
	HTML  []byte // the document after its scripts, with the content of open shadow roots in template elements
	Cut   bool   // HTML is longer than the limit

	Complete bool // false: the page still made requests when its time was over
	Took     time.Duration

	Requests int // answered ones
	Blocked  int // by ErrBlocked, the limit of requests, or because their method is none that reads
	Failed   int // answered with other errors
	Bytes    int // of all bodies

	// What the page tried and a rendered page cannot do:
	WebSockets, Workers, Windows, Dialogs int

	// Links are URLs that the page had while its Actions and Script were run. The document may no longer have them.
	Links     []string
	ActionErr error // why Actions or Script did not end

	Shots      []page.Shot // those of the Job that succeeded
	ShotErrors []error     // why the others failed
}

// Shot returns the data of a shot; nil if there is none of the kind.
func (r *Result) Shot(kind page.ShotKind) []byte {
	for _, s := range r.Shots {
		if s.Kind == kind {
			return s.Data
		}
	}
	return nil
}

// A Job is a page to render.
type Job struct {
	URL    string
	Answer Answerer
	Wait   Wait // default: WaitIdle
	// VirtualTime is how long the page's timers run on after it is complete. This takes no real time but that of the
	// page's scripts and requests. 0: not at all.
	VirtualTime time.Duration
	// Actions and Script, the body of an async function, are run when the page is complete.
	Actions []Action
	Script  string
	Shots   []page.ShotKind // pictures to take. One that fails does not fail the page
}
