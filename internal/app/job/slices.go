package job

import (
	"strconv"
	"strings"

	"kumo/internal/base/advice"
	"kumo/internal/base/item"
	"kumo/internal/base/settings"
)

// SlicesKey is the setting with the number of slices of each host: see [item.Slices].
const SlicesKey = "slices"

// CheckSlices returns an error if hosts cannot be divided into the job's number of slices. Each slice may belong to
// another node, and the nodes do not coordinate their requests. So the user must have allowed as many concurrent
// requests, or no delay between them.
func (j *Job) CheckSlices() error {
	switch slices, perHost, delay := j.Frontier.Slices, j.perHost(), j.Frontier.Delay; {
	case slices < 0 || slices > item.MaxSlices:
		return advice.Usage("--slices is %d: a host can be divided into 1 to %d", slices, item.MaxSlices)
	case slices > 1 && delay > 0 && perHost < slices:
		return advice.Usage("--slices %d lets a host get %d requests at once, from as many nodes: allow this with "+
			"--per-host %d, or with --delay 0 if the site is your own", slices, slices, slices)
	}
	return nil
}

// siteSlices is the number of slices of a host whose owner allows any request rate.
const siteSlices = 256

// PoliteSlices returns a number of slices that lets several nodes share each host; 1 if politeness does not allow it.
func (j *Job) PoliteSlices() int {
	switch {
	case j.Crawl.PagesPerHost > 0 || j.Crawl.Overrides.LimitsPages(): // no node knows the counts of the others
		return 1
	case j.Frontier.Delay == 0:
		return siteSlices
	}
	return min(j.perHost(), item.MaxSlices)
}

// SlicesOf returns the slices of a crawl with the settings.
func SlicesOf(all []settings.Setting) *item.Slices {
	values, cut := settings.Map(all)[SlicesKey]
	if !cut {
		return nil
	}
	n, _ := strconv.Atoi(strings.Join(values, "")) // the parser of settings reports invalid numbers
	return item.NewSlices(n)
}
