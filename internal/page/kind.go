package page

// A Kind says what sort of reference a link is.
type Kind uint8

// The kinds of link. Those for which Embed is true are parts of the page rather than places to go.
const (
	Seed      Kind = iota
	Anchor         // a, area
	Alternate      // link that names another document: rel alternate, next, prev, ...
	Canonical      // link rel=canonical
	Frame          // frame, iframe
	Refresh        // meta refresh, Refresh header
	Redirect       // Location header
	Header         // Link header
	Image          // img, source in picture, input type=image
	Media          // audio, video, track, source
	Script         // script src
	Style          // link rel=stylesheet
	Resource       // link rel=icon, manifest, preload, ...
	Object         // embed, object
	numKinds
)

var kindNames = [numKinds]string{"seed", "a", "link", "canonical", "frame", "refresh", "redirect", "header",
	"img", "media", "script", "style", "resource", "object"}

func (k Kind) String() string {
	if k < numKinds {
		return kindNames[k]
	}
	return "unknown"
}

// Embed reports whether the reference is part of the page that names it.
func (k Kind) Embed() bool { return k >= Image }

// Hop is the kind's letter in a discovery path, as Heritrix writes it: L link, R redirect, E embed; a seed has none (0).
func (k Kind) Hop() byte {
	switch {
	case k == Seed:
		return 0
	case k == Redirect:
		return 'R'
	case k.Embed():
		return 'E'
	}
	return 'L'
}
