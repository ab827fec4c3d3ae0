package kumo

import (
	"errors"
	"regexp"
	"strings"

	"kumo/internal/app/job"
	"kumo/internal/base/advice"
	"kumo/internal/content/policy"
)

// ErrLimit is what Run returns when a limit was reached and URLs still wait.
var ErrLimit = policy.ErrLimit

// ErrNothing is what Run returns when nothing could be fetched: no URL was answered, in this run or an earlier one. The
// error also wraps why the first was not, an *Error where that was asked for.
var ErrNothing = errors.New("nothing could be fetched")

// options are the options that do what flags do. The house's errors speak of flags.
var options = map[string]string{
	"allow-private": "AllowPrivate", "canon": "Canon", "concurrency": "Concurrency", "contact": "Contact",
	"cookies": "CookieFile", "delay": "Delay", "depth": "Depth", "embeds": "Embeds", "exclude": "Exclude",
	"header": "Header", "ignore": "Ignore", "include": "Include", "limit": "Limit", "login": "Login",
	"max-body": "MaxBody", "max-pages-per-host": "PagesPerHost", "max-pages-per-domain": "PagesPerDomain",
	"max-hosts-per-domain": "HostsPerDomain", "max-dns-per-domain": "NamesPerDomain", "max-rate": "Rate",
	"memory":     "Memory",
	"no-cookies": "NoCookies", "no-traps": "NoTraps", "order": "Order", "out": "Out", "password": "BasicAuth",
	"per-host": "PerHost",
	"prefer":   "Prefer", "proxy": "Proxy", "resolve": "Resolver", "scope": "Scope", "size-limit": "SizeLimit",
	"sitemaps": "Sitemaps", "time-limit": "TimeLimit", "timeout": "Timeout", "tls-legacy": "TLS",
	"tries": "Tries", "user": "BasicAuth",
	"user-agent": "UserAgent",
}

// commandOnly are flags of kumo crawl that have no option.
var commandOnly = map[string]bool{"bandwidth": true, "dns-server": true, "fresh": true, "input-file": true,
	"ip-delay": true, "max-backoff": true, "max-crawl-delay": true, "metrics": true, "min-free-disk": true, "moved": true,
	"outage-wait": true, "rate-dns": true, "release-trap": true, "script-paths": true, "skip-bad-seeds": true,
	"slices": true, "text": true, "fields": true}

var aFlag = regexp.MustCompile(`(kumo [a-z]+ )?--([a-z][a-z-]*[a-z])`)

// optionsOf puts options in the place of flags.
func optionsOf(text string) string {
	return aFlag.ReplaceAllStringFunc(text, func(found string) string {
		part := aFlag.FindStringSubmatch(found)
		switch verb, flag := part[1], part[2]; {
		case verb != "":
		case options[flag] != "":
			return "kumo." + options[flag]
		case commandOnly[flag]:
			return "kumo crawl --" + flag
		}
		return found
	})
}

// A reworded error says the same in other words.
type reworded struct {
	text string
	err  error
}

func (e *reworded) Error() string { return e.text }

func (e *reworded) Unwrap() error { return e.err }

// inOptions is an error in the words of those who write programs, with what can be done about it.
func inOptions(err error) error {
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
	return &reworded{text, err}
}

// errorText is an error with a text of the house's.
func errorText(text string) error { return errors.New(optionsOf(text)) }
