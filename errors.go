package kumo

import (
	"errors"
	"regexp"
	"strings"

	"kumo/internal/app/job"
	"kumo/internal/app/setting"
	"kumo/internal/base/advice"
	"kumo/internal/content/policy"
)

// ErrLimit is returned by Run if a limit was reached and URLs are still queued.
var ErrLimit = policy.ErrLimit

// ErrNothing is returned by Run if no URL was answered, in this run or an earlier one. The error also wraps the cause
// for the first URL: an *Error if the URL was requested.
var ErrNothing = errors.New("nothing could be fetched")

var aFlag = regexp.MustCompile(`(kumo [a-z]+ )?--([a-z][a-z-]*[a-z])`)

// optionsOf replaces flags in a text by options of this package.
func optionsOf(text string) string {
	return aFlag.ReplaceAllStringFunc(text, func(found string) string {
		part := aFlag.FindStringSubmatch(found)
		verb, known := part[1], setting.Find(part[2])
		switch {
		case verb != "" || known == nil:
			return found
		case known.Option != "":
			return "kumo." + known.Option
		}
		return "kumo crawl --" + known.Key
	})
}

// A rewordedError is an error with another text.
type rewordedError struct {
	text string
	err  error
}

func (e *rewordedError) Error() string { return e.text }

func (e *rewordedError) Unwrap() error { return e.err }

// toOptionError replaces flags in an error's text by options of this package, and appends the error's advice.
func toOptionError(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if errors.Is(err, job.ErrNoSeeds) {
		text = strings.ReplaceAll(text, job.ErrNoSeeds.Error(), "no URL to begin with was given to Run")
	}
	if do := advice.Of(err); do != "" {
		text += ": " + do
	}
	// the resolver is a function here
	text = strings.ReplaceAll(text, "--resolve HOST:PORT:ADDR sends", "a kumo.Resolver sends")
	if text = optionsOf(text); text == err.Error() {
		return err
	}
	return &rewordedError{text, err}
}

// errorText returns an error with a text that may contain flags, which it replaces by options.
func errorText(text string) error { return errors.New(optionsOf(text)) }
