package balance

import (
	"math"
	"time"

	"kumo/internal/base/varint"
	"kumo/internal/cluster/strategy"
	"kumo/internal/cluster/strategy/balance/model"
)

// appendQuota encodes a node's quota for SendStatus.
func appendQuota(q *strategy.Quota, basis model.Basis) []byte {
	var w varint.Writer
	w.Uint(uint64(max(0, q.Given)))
	w.Uint(uint64(max(0, q.Done)))
	w.Uint(uint64(max(0, q.Left)))
	w.Uint(uint64(q.Predicted.Milliseconds()))
	w.Uint(math.Float64bits(q.Error))
	w.Byte(byte(basis))
	return w
}

// decodeQuota adds the quota that the leader has sent to a node's status.
func decodeQuota(data []byte, f *strategy.Status) {
	r := varint.Reader{Rest: data}
	most := func(n uint64) int64 { return int64(min(r.Uint(), n)) }
	q := strategy.Quota{Given: most(1 << 60), Done: most(1 << 60), Left: most(1 << 60),
		Predicted: time.Duration(most(maxSeconds*1000)) * time.Millisecond, Error: math.Float64frombits(r.Uint())}
	q.Basis = model.Basis(r.Byte()).String()
	if r.Complete() && q.Error == q.Error {
		f.Quota = &q
	}
}

// maxSeconds bounds the predictions that users see.
const maxSeconds = 1 << 30
