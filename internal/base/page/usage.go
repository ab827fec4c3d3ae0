package page

import (
	"encoding/json"
	"strings"
)

// Uses are statements of a site about how a page may be used: "y" for allowed, "n" for not allowed, "" for nothing
// stated.
type Uses struct {
	TrainAI string `json:"train_ai,omitempty"` // training of AI models
	Search  string `json:"search,omitempty"`   // search engines
	AIInput string `json:"ai_input,omitempty"` // input of AI models, such as retrieval-augmented generation
	TDM     string `json:"tdm,omitempty"`      // text and data mining, by TDMRep; "n": the rights are reserved
}

// Usage is what a site has stated about the use of a page when the page was fetched.
type Usage struct {
	Uses
	Policy  string `json:"policy,omitempty"`  // URL of a policy for text and data mining, as written
	License string `json:"license,omitempty"` // URL of a license: of a License line, a link element or a Link field
	// the places of the statements, separated by spaces: "robots.txt:LINE", "tdmrep.json:RULE", "header", "meta", "link"
	Source string `json:"source"`
	Raw    string `json:"raw"` // the statements as written, separated by "; "
}

// TDM is a TDMRep statement as written, from meta elements.
type TDM struct{ Reservation, Policy string }

// Places are the places of a directive in a page.
type Places uint8

// The places.
const (
	InMeta   Places = 1 << iota // a meta element
	InHeader                    // an X-Robots-Tag field
)

// Each calls f with the name and the value of each stated use.
func (u *Uses) Each(f func(name, value string)) {
	for _, use := range [...]struct{ name, value string }{
		{"train_ai", u.TrainAI}, {"search", u.Search}, {"ai_input", u.AIInput}, {"tdm", u.TDM},
	} {
		if use.value != "" {
			f(use.name, use.value)
		}
	}
}

// String returns the stated uses: "train_ai=n search=y".
func (u *Uses) String() string {
	var b strings.Builder
	u.Each(func(name, value string) {
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(name + "=" + value)
	})
	return b.String()
}

// JSON returns the usage as a JSON object in one line.
func (u *Usage) JSON() []byte {
	text, _ := json.Marshal(u) // cannot fail: all members are texts
	return text
}
