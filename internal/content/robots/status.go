package robots

import "fmt"

// MaxRedirects is how many redirects in a row are followed from a /robots.txt (RFC 9309, 2.3.1.2). They may lead to
// other hosts.
const MaxRedirects = 5

// FromStatus says what an answer to GET /robots.txt means (RFC 9309, 2.3.1). Status 0 is no answer.
//
//	2xx                      the rules that body has for agent
//	3xx, 4xx                 there is no robots.txt: everything is allowed
//	429, all others, none    unknown: nothing is allowed for now
//
// The caller follows redirects, [MaxRedirects] at most; a 3xx that is left over leads nowhere.
//
// What cannot be had forbids everything for as long as that lasts. The RFC would let a crawler take the file for absent
// after thirty days; kumo does not, since nobody has said so.
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
