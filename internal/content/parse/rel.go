package parse

import (
	"iter"

	"kumo/internal/base/page"
)

// A relClass is the effect of a link type. If a link has several types, the highest class applies.
type relClass uint8

const (
	relNone     relClass = iota // a hint to connect, not a link
	relOther                    // a link to another document
	relResource                 // a link to a part of this document
	relCanonical
	relStyle
)

func linkTypes(rel []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for len(rel) > 0 {
			n := 0
			for n < len(rel) && !isSpace(rel[n]) {
				n++
			}
			if n > 0 && !yield(rel[:n]) {
				return
			}
			rel = rel[min(n+1, len(rel)):]
		}
	}
}

// relKind returns the kind of a link with this rel. other is the kind for links to another document. It returns false
// if the rel makes no link.
func relKind(rel []byte, other page.Kind) (page.Kind, bool) {
	best := relNone
	for linkType := range linkTypes(rel) {
		best = max(best, classOf(linkType))
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
	// apple-touch-icon-precomposed, apple-touch-startup-image
	if len(linkType) > maxName && equalFold(linkType[:len("apple-touch-")], "apple-touch-") {
		return relResource
	}
	return relOther
}

// isAlternate reports whether a rel means another version of the page.
func isAlternate(rel []byte) bool {
	for linkType := range linkTypes(rel) {
		if equalFold(linkType, "alternate") {
			return true
		}
	}
	return false
}

// hints are the rel values for search engines.
type hints uint8

const (
	noFollow hints = 1 << iota
	userMade
	sponsored
)

func hintsOf(rel []byte) (h hints) {
	for linkType := range linkTypes(rel) {
		switch {
		case equalFold(linkType, "nofollow"):
			h |= noFollow
		case equalFold(linkType, "ugc"):
			h |= userMade
		case equalFold(linkType, "sponsored"):
			h |= sponsored
		}
	}
	return h
}
