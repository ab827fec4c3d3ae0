package setting

import "kumo/internal/cluster/desired"

// LimitsOf returns the limits in the settings of a crawl of several nodes. Invalid ones are ignored.
func LimitsOf(all map[string][]string) desired.Limits {
	v := &Values{}
	for _, key := range []string{desired.WhyLimit, desired.WhySize, desired.WhyTime} {
		if values := all[key]; len(values) > 0 {
			_ = Find(key).Set(v, values) // kumo start and kumo set have checked it
		}
	}
	return desired.Limits{Pages: v.Job.Crawl.Pages, Bytes: v.Job.Crawl.Bytes, Time: v.Job.Crawl.Time}
}
