package job

import (
	"strconv"
	"strings"

	"kumo/internal/base/advice"
	"kumo/internal/base/item"
	"kumo/internal/base/settings"
)

// SlicesKey is the setting that says into how many slices each host is cut: see [item.Slices].
const SlicesKey = "slices"

// CheckSlices says why hosts cannot be cut into as many slices as the job wants. As each slice may be another node's,
// and none of these knows when another has asked the host, the user must have allowed as many requests at once, or not
// to wait between them.
func (j *Job) CheckSlices() error {
	switch slices, perHost, delay := j.Frontier.Slices, j.perHost(), j.Frontier.Delay; {
	case slices < 0 || slices > item.MaxSlices:
		return advice.Usage("--slices is %d: a host can be cut into 1 to %d", slices, item.MaxSlices)
	case slices > 1 && delay > 0 && perHost < slices:
		return advice.Usage("--slices %d lets a host get %d requests at once, from as many nodes: allow that with "+
			"--per-host %d, or with --delay 0 if the site is your own", slices, slices, slices)
	}
	return nil
}

// siteSlices is into how many slices a host is cut whose owner lets it be asked at any rate.
const siteSlices = 256

// PoliteSlices is into how many slices hosts may be cut so that several nodes share each; 1 where politeness allows no
// more.
func (j *Job) PoliteSlices() int {
	switch {
	case j.Crawl.PagesPerHost > 0 || j.Crawl.Overrides.LimitsPages(): // no node knows how many the others have
		return 1
	case j.Frontier.Delay == 0:
		return siteSlices
	}
	return min(j.perHost(), item.MaxSlices)
}

// SlicesOf are the slices of a crawl that was begun with some settings.
func SlicesOf(all []settings.Setting) *item.Slices {
	values, cut := settings.Map(all)[SlicesKey]
	if !cut {
		return nil
	}
	n, _ := strconv.Atoi(strings.Join(values, "")) // what is no number the settings' reader says
	return item.NewSlices(n)
}
