package inspect

// A Model summarizes what a strategy has learned about the nodes' fetch times. Errors are root mean squares of the
// logarithm of predicted over true seconds, for samples not used in training: 0.1 is about 10 %.
type Model struct {
	Crawl       string      `json:"crawl"`
	Samples     int         `json:"samples"`       // stored samples
	Trained     int         `json:"trained"`       // of these, used to train the network; 0: no network yet
	Least       int         `json:"least"`         // minimum number of samples for a network
	HeldBack    int         `json:"held_back"`     // samples used for testing; 0: no errors are known
	Error       float64     `json:"error"`         // of the network
	ErrorByPace float64     `json:"error_by_pace"` // of predictions by each node's pages per second
	Nodes       []NodeModel `json:"nodes"`         // by name
}

// A NodeModel is the part of a Model on one node.
type NodeModel struct {
	Name        string       `json:"name"`
	Member      bool         `json:"member"` // currently a member
	Samples     int          `json:"samples"`
	Machine     Machine      `json:"machine"` // as reported by the node, or in its last sample
	Basis       string       `json:"basis"`   // basis of the predictions: learnt, pace, mean or nothing
	Predictions []Prediction `json:"predictions"`
}

// A Prediction is the predicted time to fetch a number of URLs.
type Prediction struct {
	URLs    int     `json:"urls"`
	Seconds float64 `json:"seconds"`
}

// A Machine describes a node's resources. 0 means unknown.
type Machine struct {
	Cores       float64 `json:"cores"`
	GHz         float64 `json:"ghz"`
	MemoryGB    float64 `json:"memory_gb"`
	NetworkMbps float64 `json:"network_mbps"`
	DiskMbps    float64 `json:"disk_mbps"`
}

// A Quota is the number of URLs assigned to a node, and the predicted time to fetch them.
type Quota struct {
	Given     int64    `json:"given"`           // URLs assigned by the current master
	Done      int64    `json:"done"`            // pages fetched since
	Left      int64    `json:"left"`            // remaining URLs
	Predicted float64  `json:"predicted"`       // remaining seconds
	Error     *float64 `json:"error,omitempty"` // of recent predictions, relative to the true time; nil: unknown
	Basis     string   `json:"basis"`           // basis of the prediction: learnt, pace, mean or nothing
}
