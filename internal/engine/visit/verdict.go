// Package visit contains the parts of a visit that crawls, batch crawls and plans share: the verdict on an exchange,
// the health of origins, and fetching robots.txt before other URLs.
package visit

import (
	"context"
	"errors"
	"math"
	"net/http"
	"net/netip"
	"time"

	"golang.org/x/time/rate"

	"kumo/internal/base/page"
	"kumo/internal/content/fetch"
	"kumo/internal/state/frontier"
)

// A Fetcher makes one HTTP exchange.
type Fetcher interface {
	Get(ctx context.Context, req fetch.Request, resp *page.Response) error
	Resolve(ctx context.Context, hostname, port string) (netip.Addr, error)
	Allow(host string)
}

// NewLimiter returns a limiter of requests per second; 0: unlimited.
func NewLimiter(perSecond float64) *rate.Limiter {
	if perSecond <= 0 {
		return rate.NewLimiter(rate.Inf, 1)
	}
	return rate.NewLimiter(rate.Limit(perSecond), max(1, int(math.Ceil(perSecond/10))))
}

// Minimum number of requests per URL while its host answers that it is overloaded or failing.
const (
	throttledTries = 10 // for a URL answered with 429
	robotsTries    = 5  // for a robots.txt
)

// A Verdict is the consequence of an exchange.
type Verdict struct {
	Again      bool             // the URL is queued again
	Late       bool             // behind the host's other URLs, as the failure may be this URL's own
	Outcome    frontier.Outcome // for the host
	RetryAfter time.Duration    // requested by the answer
	Failure    page.Failure     // page.None if there was an answer
	Detail     string           // of the failure
	Own        bool             // the failure is this machine's, or its proxy's
}

// Judge returns the verdict on an exchange. tries is the number of requests for the URL so far, most their limit.
func Judge(resp *page.Response, err error, tries, most int, now time.Time) Verdict {
	if err != nil {
		return judgeFailure(err, tries < most)
	}
	v := Verdict{Outcome: frontier.Answered, Again: tries < most, Late: true}
	switch s := resp.Status; {
	case s == http.StatusTooManyRequests:
		v.Outcome, v.RetryAfter, v.Again = frontier.Throttled, resp.RetryAfter(now), tries < max(most, throttledTries)
	case s == http.StatusServiceUnavailable:
		v.Outcome, v.RetryAfter = frontier.Throttled, resp.RetryAfter(now)
	case s == http.StatusRequestTimeout, s == http.StatusInternalServerError, s == http.StatusBadGateway,
		s == http.StatusGatewayTimeout, resp.Truncated == page.Disconnect:
	default:
		return Verdict{Outcome: frontier.Answered}
	}
	return v
}

func judgeFailure(err error, more bool) Verdict {
	v := Verdict{Outcome: frontier.Failed, Failure: page.Internal, Detail: err.Error()}
	if fe, ok := errors.AsType[*fetch.Error](err); ok {
		v.Failure, v.Own = fe.Failure, fe.IsLocal()
	}
	switch v.Failure {
	case page.Private: // rejected by the crawl's own rule
		v.Outcome = frontier.NoRequest
		return v
	case page.Local: // this machine has no socket: the host saw nothing
		v.Outcome = frontier.NoRequest
	}
	v.Again, v.Late = more, !v.Failure.AffectsHost()
	return v
}

// JudgeRobots is Judge for a robots.txt. If the server fails, it is tried more often than other URLs: nothing may be
// fetched until its rules are known.
func JudgeRobots(resp *page.Response, err error, tries, most int, now time.Time) Verdict {
	v := Judge(resp, err, tries, most, now)
	if s := resp.Status; err == nil && (s >= 500 || s == http.StatusTooManyRequests) {
		v.Outcome, v.RetryAfter, v.Again = frontier.Throttled, resp.RetryAfter(now), tries < max(most, robotsTries)
	}
	return v
}
