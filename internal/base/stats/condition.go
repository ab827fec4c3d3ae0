package stats

// A Condition is the forecast of a running crawl, and the reason if it makes no progress, as nodes report them.
type Condition struct {
	// seconds since the crawl last reached any host, while it waits for the network; 0: online
	Offline       float64 `json:"cut_off,omitempty"`
	OfflineReason string  `json:"cut_off_why,omitempty"` // the last error

	EndsIn   float64 `json:"ends_in_at_least,omitempty"` // seconds, set by the slowest host
	Growth   float64 `json:"queue_growth,omitempty"`     // growth of the queue in URLs per second
	Forecast string  `json:"forecast,omitempty"`         // the forecast as text

	// seconds without a response though URLs are pending; 0: not stalled
	Stalled   float64 `json:"stalled,omitempty"`
	StalledBy string  `json:"stalled_by,omitempty"` // category of the reason; then the reason as text, and a remedy
	StallWhy  string  `json:"stall_why,omitempty"`
	StallDo   string  `json:"stall_do,omitempty"`
}
