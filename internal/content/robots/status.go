package robots

import "fmt"

// MaxRedirects is the number of consecutive redirects from /robots.txt that are followed (RFC 9309, 2.3.1.2). They may
// lead to other hosts.
const MaxRedirects = 5

// FromStatus returns the rules for a response to GET /robots.txt (RFC 9309, 2.3.1). Status 0 means that there was no
// response.
//
//	2xx                      the rules in body for agent
//	3xx, 4xx                 there is no robots.txt: everything is allowed
//	429, all others, none    unknown: nothing is allowed for now
//
// The caller follows redirects, [MaxRedirects] at most; a remaining 3xx leads nowhere.
//
// An unavailable robots.txt blocks everything as long as that lasts. RFC 9309 allows a crawler to treat the file as
// absent after thirty days. kumo does not, since the site's owner has not allowed it.
func FromStatus(status int, body []byte, agent string) *Rules {
	switch {
	case status == 0:
		return DisallowAll("robots.txt: no answer")
	case status >= 200 && status <= 299:
		return Parse(body, agent)
	case status >= 300 && status <= 499 && status != 429:
		return AllowAll(fmt.Sprintf("robots.txt: status %d", status))
	}
	return DisallowAll(fmt.Sprintf("robots.txt: status %d", status))
}
