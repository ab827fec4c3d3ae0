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

// ErrLimit is what Run returns when a limit was reached and URLs still wait.
var ErrLimit = policy.ErrLimit

// ErrNothing is what Run returns when nothing could be fetched: no URL was answered, in this run or an earlier one. The
// error also wraps why the first was not, an *Error where that was asked for.
var ErrNothing = errors.New("nothing could be fetched")

var aFlag = regexp.MustCompile(`(kumo [a-z]+ )?--([a-z][a-z-]*[a-z])`)

// optionsOf puts options in the place of flags.
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

// A reworded error says the same in other words.
type rewordedError struct {
	text string
	err  error
}

func (e *rewordedError) Error() string { return e.text }

func (e *rewordedError) Unwrap() error { return e.err }

// toOptionError is an error in the words of those who write programs, with what can be done about it.
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
	text = strings.ReplaceAll(text, "--resolve HOST:PORT:ADDR sends", "a kumo.Resolver sends") // it is a function's work
	if text = optionsOf(text); text == err.Error() {
		return err
	}
	return &rewordedError{text, err}
}

// errorText is an error with a text of the house's.
func errorText(text string) error { return errors.New(optionsOf(text)) }
