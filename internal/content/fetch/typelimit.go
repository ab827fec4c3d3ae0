package fetch

import (
	"mime"
	"strings"
)

// A TypeLimit limits the bodies of a media type.
type TypeLimit struct {
	Type  string // "application/pdf", or "image/*" for all of them; in lower case
	Bytes int64
}

// matches reports whether the limit is for a media type.
func (l *TypeLimit) matches(mediaType string) bool {
	if family, all := strings.CutSuffix(l.Type, "*"); all {
		return strings.HasPrefix(mediaType, family)
	}
	return mediaType == l.Type
}

// bodyLimit returns the limit of a body with a Content-Type; otherwise if the type has none of its own.
func bodyLimit(limits []TypeLimit, contentType string, otherwise int64) int64 {
	mediaType, _, _ := mime.ParseMediaType(contentType) // after an error it is often usable
	for i := range limits {
		if limits[i].matches(mediaType) {
			return min(limits[i].Bytes, maxLength)
		}
	}
	return otherwise
}

// largestBody returns the largest limit of a body.
func largestBody(limits []TypeLimit, otherwise int64) int64 {
	for i := range limits {
		otherwise = max(otherwise, min(limits[i].Bytes, maxLength))
	}
	return otherwise
}
