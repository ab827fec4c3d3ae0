package desired

import (
	"fmt"
	"time"

	"kumo/internal/content/policy"
)

// Limits are the limits of all nodes together; 0: none.
type Limits struct {
	Pages int64
	Bytes int64         // received from sites, in all runs
	Time  time.Duration // since the last start
}

// The reasons of a stop at a limit are the names of the settings.
const (
	WhyLimit = "limit"
	WhySize  = "size-limit"
	WhyTime  = "time-limit"
)

// Reached returns the limit that is reached; "" if none is.
func (l Limits) Reached(pages, bytes int64, ran time.Duration) (why string) {
	switch {
	case l.Pages > 0 && pages >= l.Pages:
		return WhyLimit
	case l.Bytes > 0 && bytes >= l.Bytes:
		return WhySize
	case l.Time > 0 && ran >= l.Time:
		return WhyTime
	}
	return ""
}

// A LimitError ends the nodes of a crawl that was stopped at a limit. It is a [policy.ErrLimit].
type LimitError struct{ Why string }

func (e *LimitError) Error() string { return fmt.Sprintf("the crawl has reached its --%s", e.Why) }

// Unwrap makes errors.Is find the common error of all limits.
func (e *LimitError) Unwrap() error { return policy.ErrLimit }

// AtLimit returns why the nodes of a crawl that was stopped at a limit end; nil if it was not.
func (r *Record) AtLimit() error {
	if r.State != Stopping || r.Why == "" {
		return nil
	}
	return &LimitError{r.Why}
}
