package render

import (
	"fmt"

	"github.com/andybalholm/cascadia"
)

// A Wait is what a page waits for before it is read: WaitIdle, WaitLoad or a CSS selector that must match.
type Wait string

// The waits that are no selectors; HTML has no elements of these names.
const (
	WaitIdle Wait = "idle" // until the page has loaded and is quiet; the default
	WaitLoad Wait = "load" // until the page has loaded
)

// ParseWait parses a Wait.
func ParseWait(text string) (*Wait, error) {
	w := Wait(text)
	if w == WaitIdle || w == WaitLoad {
		return &w, nil
	}
	if _, err := cascadia.ParseGroup(text); err != nil {
		return nil, fmt.Errorf("%q: want %s, %s or a CSS selector: %w", text, WaitIdle, WaitLoad, err)
	}
	return &w, nil
}

// Selector returns the CSS selector; "" if there is none.
func (w Wait) Selector() string {
	if w == "" || w == WaitIdle || w == WaitLoad {
		return ""
	}
	return string(w)
}
