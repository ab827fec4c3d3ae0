package inspect

// A Model is what a crawl's strategy has learnt of how long its nodes take. Errors are root mean squares of the
// logarithm of predicted by true seconds, over samples that nothing was learnt from: 0.1 is about 10 %.
type Model struct {
	Crawl       string      `json:"crawl"`
	Samples     int         `json:"samples"`       // that the crawl keeps
	Trained     int         `json:"trained"`       // of these, those that the network has learnt from; 0: there is none
	Least       int         `json:"least"`         // without so many there is no network
	HeldBack    int         `json:"held_back"`     // those that it is tested by; 0: there are no errors
	Error       float64     `json:"error"`         // of the network
	ErrorByPace float64     `json:"error_by_pace"` // of each node's own pages a second
	Nodes       []NodeModel `json:"nodes"`         // by name
}

// A NodeModel is what a Model says of one node.
type NodeModel struct {
	Name        string       `json:"name"`
	Member      bool         `json:"member"` // it is one now
	Samples     int          `json:"samples"`
	Machine     Machine      `json:"machine"` // as the node has told, or as it was in its last sample
	Basis       string       `json:"basis"`   // what predictions rest on: learnt, pace, mean or nothing
	Predictions []Prediction `json:"predictions"`
}

// A Prediction is how long a node is to take for so many URLs.
type Prediction struct {
	URLs    int     `json:"urls"`
	Seconds float64 `json:"seconds"`
}

// A Machine is what a node has to crawl with. 0 is unknown.
type Machine struct {
	Cores       float64 `json:"cores"`
	GHz         float64 `json:"ghz"`
	MemoryGB    float64 `json:"memory_gb"`
	NetworkMbps float64 `json:"network_mbps"`
	DiskMbps    float64 `json:"disk_mbps"`
}

// A Quota is what a node was given to fetch, and how long that is to take.
type Quota struct {
	Given     int64    `json:"given"`           // URLs, by the master of now
	Done      int64    `json:"done"`            // pages that it has fetched since
	Left      int64    `json:"left"`            // URLs that it has to fetch
	Predicted float64  `json:"predicted"`       // seconds until it is done with them
	Error     *float64 `json:"error,omitempty"` // of its last predictions, a share of the true time; nil: none is known
	Basis     string   `json:"basis"`           // what they rest on: learnt, pace, mean or nothing
}
