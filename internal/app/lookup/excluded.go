package lookup

import (
	"context"
	"encoding/json"
	"kumo/internal/state/store/jsonl"
	"time"
)

const skippedName = "skipped.jsonl"

// Excluded returns up to n URLs within reach that a rule excluded, the newest first, from behind a cursor on, and the cursor of what
// follows; 0 if nothing does. With an empty rule it returns those of all. As List it reads a bounded part of the file:
// there may be fewer than n, or none, and more behind them.
func (a *Archive) Excluded(ctx context.Context, rule string, cursor int64, n int) (all []jsonl.SkipLine,
	next int64, err error) {
	until := time.Now().Add(scanTime)
	next, err = a.eachBack(ctx, skippedName, cursor, func(line []byte, _, gone int64) (bool, error) {
		var x jsonl.SkipLine
		if json.Unmarshal(line, &x) == nil && (rule == "" || x.Rule == rule) {
			all = append(all, x)
		}
		return len(all) < n && gone < 4*scanBytes && (gone < stepBytes || time.Now().Before(until)), nil
	})
	return all, next, err
}
