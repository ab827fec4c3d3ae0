package stats

// A Condition is what is to be expected of a crawl that runs, and what keeps it from going on, as nodes tell it.
type Condition struct {
	// for so many seconds it has reached no host, and waits; 0: it is not cut off
	Offline       float64 `json:"cut_off,omitempty"`
	OfflineReason string  `json:"cut_off_why,omitempty"` // the last error

	EndsIn   float64 `json:"ends_in_at_least,omitempty"` // seconds, by the host that takes longest
	Growth   float64 `json:"queue_growth,omitempty"`     // URLs a second that wait more; negative: less
	Forecast string  `json:"forecast,omitempty"`         // the same in words

	// for so many seconds nothing was answered though URLs wait; 0: that is not so
	Stalled   float64 `json:"stalled,omitempty"`
	StalledBy string  `json:"stalled_by,omitempty"` // the kind of reason, why in words, and what to do
	StallWhy  string  `json:"stall_why,omitempty"`
	StallDo   string  `json:"stall_do,omitempty"`
}
