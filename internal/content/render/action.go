package render

import (
	"fmt"
	"slices"
)

// An Action is something that a user would do on a page to see more of it.
type Action string

// The actions.
const (
	Scroll  Action = "scroll"  // to the end of the page, or of its largest list
	More    Action = "more"    // click buttons that add entries, such as "Load more"
	Details Action = "details" // open <details>
)

// Actions are all actions.
var Actions = []Action{Scroll, More, Details}

// ParseActions parses names of actions.
func ParseActions(names []string) (all []Action, err error) {
	for _, name := range names {
		a := Action(name)
		if !slices.Contains(Actions, a) {
			return nil, fmt.Errorf("%q is not one of scroll, more, details", name)
		}
		if !slices.Contains(all, a) {
			all = append(all, a)
		}
	}
	return all, nil
}
