package policy

import (
	"fmt"
	"slices"
	"strings"

	"kumo/internal/base/page"
)

// Usage decides what a crawl does with pages whose site does not allow a use. The zero value only records what sites
// state.
type Usage uint8

// The uses that a crawl obeys, and UsageSkip: URLs are not fetched if their robots.txt already does not allow one.
const (
	UsageTrainAI Usage = 1 << iota
	UsageSearch
	UsageAIInput
	UsageTDM
	UsageSkip
)

const usageRecord = "record"

// usageNames are the names of the uses, in the order of their bits.
var usageNames = []string{"train-ai", "search", "ai-input", "tdm"}

// ParseUsage parses "record", "obey=USES" or "skip=USES" with names of uses, separated by commas.
func ParseUsage(text string) (Usage, error) {
	mode, list, ok := strings.Cut(text, "=")
	var u Usage
	switch {
	case text == usageRecord:
		return 0, nil
	case mode == "skip" && ok:
		u = UsageSkip
	case mode != "obey" || !ok:
		return 0, fmt.Errorf("%q: want record, obey=USES or skip=USES, such as obey=train-ai,tdm", text)
	}
	for name := range strings.SplitSeq(list, ",") {
		i := slices.Index(usageNames, strings.ReplaceAll(strings.TrimSpace(name), "_", "-"))
		if i < 0 {
			return 0, fmt.Errorf("%q: %q is not one of %s", text, name, strings.Join(usageNames, ", "))
		}
		u |= 1 << i
	}
	return u, nil
}

// String returns the text from which u can be parsed.
func (u Usage) String() string {
	var names []string
	for i, name := range usageNames {
		if u&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	switch {
	case len(names) == 0:
		return usageRecord
	case u&UsageSkip != 0:
		return "skip=" + strings.Join(names, ",")
	}
	return "obey=" + strings.Join(names, ",")
}

// Forbidden returns the first obeyed use that a site does not allow, "train-ai"; "" if there is none.
func (u Usage) Forbidden(stated *page.Uses) string {
	for i, value := range [...]string{stated.TrainAI, stated.Search, stated.AIInput, stated.TDM} {
		if u&(1<<i) != 0 && value == "n" {
			return usageNames[i]
		}
	}
	return ""
}

// Skips reports whether URLs are skipped by what their robots.txt states.
func (u Usage) Skips() bool { return u&UsageSkip != 0 }
