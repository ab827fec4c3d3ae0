package parse

import "kumo/internal/page"

// A relClass says what a link type makes of a link. Where a link has several types, the greatest class wins.
type relClass uint8

const (
	relNone     relClass = iota // a hint to connect, not a reference
	relOther                    // names another document
	relResource                 // names a part of this one
	relCanonical
	relStyle
)

// relKind returns the kind of link that a rel makes, other being that of a reference to another document. It reports false
// if the rel makes no link.
func relKind(rel []byte, other page.Kind) (page.Kind, bool) {
	best := relNone
	for len(rel) > 0 {
		n := 0
		for n < len(rel) && !isSpace(rel[n]) {
			n++
		}
		if n > 0 {
			best = max(best, classOf(rel[:n]))
		}
		rel = rel[min(n+1, len(rel)):]
	}
	switch best {
	case relStyle:
		return page.Style, true
	case relCanonical:
		return page.Canonical, true
	case relResource:
		return page.Resource, true
	case relOther:
		return other, true
	}
	return 0, false
}

func classOf(linkType []byte) relClass {
	var room [maxName]byte
	switch string(lower(&room, linkType)) {
	case "stylesheet":
		return relStyle
	case "canonical":
		return relCanonical
	case "dns-prefetch", "preconnect":
		return relNone
	case "icon", "mask-icon", "fluid-icon", "apple-touch-icon", "manifest", "preload", "modulepreload", "prefetch":
		return relResource
	}
	if len(linkType) > maxName && equalFold(linkType[:len("apple-touch-")], "apple-touch-") { // -icon-precomposed, -startup-image
		return relResource
	}
	return relOther
}
