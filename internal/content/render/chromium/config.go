package chromium

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"
)

// A Config has the settings of a browser and its pages. The zero value means the defaults.
type Config struct {
	Path      string // of the program; default: the first one of Programs in PATH
	NoSandbox bool   // start the browser without its sandbox, which Chromium requires for root
	Agent     string // User-Agent of the page's scripts; default: Chromium's

	Timeout time.Duration // for a page; after it, the result is the page as it is then. Default 30s
	Quiet   time.Duration // a page is complete when it has loaded and made no request for so long; default 500ms
	Settle  time.Duration // a page with requests that never end is complete so long after it has loaded; default 10s
	MaxHTML int           // characters of a page's markup; the rest is dropped. Default 16 Mi

	MaxRequests int // of a page; later ones are blocked. Default 1,000

	Width, Height int // of the window, in pixels; default 1280 × 800
}

// Programs are the names of browsers that are looked for.
var Programs = []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"}

// ErrNoBrowser means that no browser was found.
var ErrNoBrowser = errors.New("no browser was found: install chromium (Debian: apt install chromium), or name a " +
	"Chromium or Chrome")

// ErrSandbox means that the browser would run as root, and Chromium's sandbox does not allow that.
var ErrSandbox = errors.New("the browser's sandbox does not work for root: run kumo as another user, or turn the " +
	"sandbox off if all pages are harmless")

func (c Config) withDefaults() (Config, error) {
	c.Timeout = cmp.Or(c.Timeout, 30*time.Second)
	c.Quiet = cmp.Or(c.Quiet, 500*time.Millisecond)
	c.Settle = cmp.Or(c.Settle, 10*time.Second)
	c.MaxHTML = cmp.Or(c.MaxHTML, 16<<20)
	c.MaxRequests = cmp.Or(c.MaxRequests, 1000)
	c.Width, c.Height = cmp.Or(c.Width, 1280), cmp.Or(c.Height, 800)
	if os.Geteuid() == 0 && !c.NoSandbox {
		return c, ErrSandbox
	}
	if c.Path != "" {
		if _, err := exec.LookPath(c.Path); err != nil {
			return c, fmt.Errorf("find the browser: %w", err)
		}
		return c, nil
	}
	for _, name := range Programs {
		if path, err := exec.LookPath(name); err == nil {
			c.Path = path
			return c, nil
		}
	}
	return c, ErrNoBrowser
}
