package policy

import "fmt"

// RenderMode selects the pages whose scripts a crawl runs in a browser.
type RenderMode string

// The modes.
const (
	RenderNever  RenderMode = "never"
	RenderAuto   RenderMode = "auto" // pages that show nothing without script, and others of hosts where that gains
	RenderAlways RenderMode = "always"
)

// RenderModes are all modes.
var RenderModes = []string{string(RenderNever), string(RenderAuto), string(RenderAlways)}

// ParseRenderMode parses a mode.
func ParseRenderMode(text string) (*RenderMode, error) {
	switch m := RenderMode(text); m {
	case RenderNever, RenderAuto, RenderAlways:
		return &m, nil
	}
	return nil, fmt.Errorf("%q: want never, auto or always", text)
}

// Renders reports whether any override has pages rendered.
func (o *Overrides) Renders() bool {
	return o.Any(func(one *Override) bool { return one.Render != nil && *one.Render != RenderNever })
}
