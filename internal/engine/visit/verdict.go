// Package visit has what crawls, batch crawls and plans share of a visit: the verdict of an exchange, the health of
// origins, and the robots.txt that comes before all else.
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

// NewLimiter returns a limiter of the requests per second to all hosts together; 0: without limit.
func NewLimiter(perSecond float64) *rate.Limiter {
	if perSecond <= 0 {
		return rate.NewLimiter(rate.Inf, 1)
	}
	return rate.NewLimiter(rate.Limit(perSecond), max(1, int(math.Ceil(perSecond/10))))
}

// Visits that a URL gets although its tries are used up, while its host answers that it has trouble.
const (
	throttledTries = 10 // of a URL that is answered with 429
	robotsTries    = 5  // of a robots.txt
)

// A Verdict is what follows from an exchange.
type Verdict struct {
	Again      bool             // the URL is queued again
	Late       bool             // behind the host's other URLs, as the failure may be its own
	Outcome    frontier.Outcome // for the host
	RetryAfter time.Duration    // that the answer asks for
	Failure    page.Failure     // page.None if there was an answer
	Detail     string           // of the failure
	Own        bool             // the failure is this machine's, or its proxy's
}

// Judge returns the verdict of an exchange. tries is how often the URL was requested, most how often it may be.
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
	case page.Private: // the crawl's own rule
		v.Outcome = frontier.NoRequest
		return v
	case page.Local: // this machine has no socket: the host saw nothing
		v.Outcome = frontier.NoRequest
	}
	v.Again, v.Late = more, !v.Failure.AffectsHost()
	return v
}

// JudgeRobots is Judge for a robots.txt. A server that has trouble is asked more often: until its rules are known,
// nothing may be fetched.
func JudgeRobots(resp *page.Response, err error, tries, most int, now time.Time) Verdict {
	v := Judge(resp, err, tries, most, now)
	if s := resp.Status; err == nil && (s >= 500 || s == http.StatusTooManyRequests) {
		v.Outcome, v.RetryAfter, v.Again = frontier.Throttled, resp.RetryAfter(now), tries < max(most, robotsTries)
	}
	return v
}
