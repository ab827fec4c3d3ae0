package visit

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"kumo/internal/base/page"
	"kumo/internal/content/fetch"
	"kumo/internal/state/frontier"
)

// TestVerdicts tests the verdicts on exchanges for pages and robots.txt files, at the last of three tries.
func TestVerdicts(t *testing.T) {
	now := time.Now()
	failed := func(f page.Failure) error { return &fetch.Error{Failure: f, Err: errors.New("why")} }
	wait := http.Header{"Retry-After": {"7"}}
	for _, c := range []struct {
		name         string
		resp         page.Response
		err          error
		page, robots Verdict
	}{
		{"ok", page.Response{Status: 200}, nil, Verdict{Outcome: frontier.Answered}, Verdict{Outcome: frontier.Answered}},
		{"429", page.Response{Status: 429, Header: wait}, nil,
			Verdict{Again: true, Late: true, Outcome: frontier.Throttled, RetryAfter: 7 * time.Second},
			Verdict{Again: true, Late: true, Outcome: frontier.Throttled, RetryAfter: 7 * time.Second}},
		{"503", page.Response{Status: 503, Header: wait}, nil,
			Verdict{Late: true, Outcome: frontier.Throttled, RetryAfter: 7 * time.Second},
			Verdict{Again: true, Late: true, Outcome: frontier.Throttled, RetryAfter: 7 * time.Second}},
		{"500", page.Response{Status: 500}, nil, Verdict{Late: true, Outcome: frontier.Answered},
			Verdict{Again: true, Late: true, Outcome: frontier.Throttled}},
		{"cut off", page.Response{Status: 200, Truncated: page.Disconnect}, nil,
			Verdict{Late: true, Outcome: frontier.Answered}, Verdict{Late: true, Outcome: frontier.Answered}},
		{"refused", page.Response{}, failed(page.Refused),
			Verdict{Outcome: frontier.Failed, Failure: page.Refused}, Verdict{Outcome: frontier.Failed, Failure: page.Refused}},
		{"private", page.Response{}, failed(page.Private), Verdict{Failure: page.Private}, Verdict{Failure: page.Private}},
		{"no socket", page.Response{}, failed(page.Local), Verdict{Late: true, Failure: page.Local},
			Verdict{Late: true, Failure: page.Local}},
	} {
		for i, judge := range []func(*page.Response, error, int, int, time.Time) Verdict{Judge, JudgeRobots} {
			want := []Verdict{c.page, c.robots}[i]
			got := judge(&c.resp, c.err, 3, 3, now)
			got.Detail, got.Own = "", false
			if got != want {
				t.Errorf("%s, robots %d: %+v, want %+v", c.name, i, got, want)
			}
			if first := judge(&c.resp, c.err, 1, 3, now); c.err != nil && first.Again == (c.name == "private") {
				t.Errorf("%s: at the first try %+v", c.name, first)
			}
		}
	}
}
