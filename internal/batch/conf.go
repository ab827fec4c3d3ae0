package batch

// A Conf is what a job is made from: plain data, the same in every process that runs a task of it.
type Conf struct {
	Job   string `json:"job"`
	Date  string `json:"date"`  // 2026-11-21
	Round int    `json:"round"` // from 0
}
