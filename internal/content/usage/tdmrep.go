package usage

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"kumo/internal/content/robots"
)

// TDMRepPath is the path of a site's rules for text and data mining.
const TDMRepPath = "/.well-known/tdmrep.json"

const maxRules = 1000 // of a tdmrep.json; the rest is ignored

// A TDMRule is a rule of a tdmrep.json.
type TDMRule struct {
	Number      int    // from 1
	Location    string // the paths, with the wildcards of robots.txt
	Reservation string // "1": the rights are reserved
	Policy      string // URL
}

// A TDMRep is a parsed tdmrep.json.
type TDMRep struct{ rules []TDMRule }

// ParseTDMRep parses a tdmrep.json. Rules without location are ignored.
func ParseTDMRep(body []byte) (*TDMRep, error) {
	var items []struct {
		Location    string          `json:"location"`
		Reservation json.RawMessage `json:"tdm-reservation"`
		Policy      string          `json:"tdm-policy"`
	}
	if err := json.Unmarshal(body, &items); err != nil {
		return nil, fmt.Errorf("parse tdmrep.json: %w", err)
	}
	t := &TDMRep{}
	for i, it := range items {
		if it.Location == "" || len(it.Location) > maxURL {
			continue
		}
		if len(t.rules) == maxRules {
			break
		}
		t.rules = append(t.rules, TDMRule{Number: i + 1, Location: it.Location,
			Reservation: strings.Trim(string(it.Reservation), `"`), Policy: it.Policy})
	}
	return t, nil
}

// Size returns the approximate memory of the rules, in bytes.
func (t *TDMRep) Size() (n int) {
	if t == nil {
		return 0
	}
	for i := range t.rules {
		n += 64 + len(t.rules[i].Location) + len(t.rules[i].Reservation) + len(t.rules[i].Policy)
	}
	return n
}

// Match returns the first rule that matches a path and query in escaped form; nil if none does, or t is nil.
func (t *TDMRep) Match(pathAndQuery string) *TDMRule {
	if t == nil {
		return nil
	}
	for i := range t.rules {
		if r := &t.rules[i]; robots.MatchesPath(r.Location, pathAndQuery) {
			return r
		}
	}
	return nil
}

func (r *TDMRule) statement() Statement {
	s := tdmStatement(r.Reservation, r.Policy, "tdm-reservation: ", "tdm-policy: ")
	s.Source = "tdmrep.json:" + strconv.Itoa(r.Number)
	return s
}
