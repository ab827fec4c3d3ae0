package rank

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// Preferences are a user's rules for the importance of URLs, as in --prefer. nil means none.
type Preferences []preference

type preference struct {
	rule string
	urls *regexp.Regexp
	lift Lift
}

// ParsePreference parses REGEX=WEIGHT: URLs that contain a match are WEIGHT times as important. WEIGHT follows the last
// =.
func ParsePreference(rule string) (Preferences, error) {
	at := strings.LastIndexByte(rule, '=')
	if at < 1 {
		return nil, fmt.Errorf("%q is not REGEX=WEIGHT, such as /news/=4", rule)
	}
	weight, err := strconv.ParseFloat(rule[at+1:], 64)
	if err != nil || !(weight > 0) || math.IsInf(weight, 1) {
		return nil, fmt.Errorf("%q: the weight must be a number above 0, such as 4 or 0.25", rule)
	}
	urls, err := regexp.Compile(rule[:at])
	if err != nil {
		return nil, fmt.Errorf("%q: %w", rule, err)
	}
	return Preferences{{rule, urls, LiftOf(weight)}}, nil
}

// Texts returns the rules as they were written.
func (p Preferences) Texts() (rules []string) {
	for i := range p {
		rules = append(rules, p[i].rule)
	}
	return rules
}

// Lift returns the total lift of all rules that match a canonical URL.
func (p Preferences) Lift(url string) (sum Lift) {
	for i := range p {
		if p[i].urls.MatchString(url) {
			sum = max(-mostLift, min(mostLift, sum+p[i].lift))
		}
	}
	return sum
}

// Rules returns the rules that match a canonical URL, as they were written.
func (p Preferences) Rules(url string) (all []string) {
	for i := range p {
		if p[i].urls.MatchString(url) {
			all = append(all, p[i].rule)
		}
	}
	return all
}
