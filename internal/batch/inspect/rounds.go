package inspect

import (
	"context"
	"fmt"

	"kumo/internal/batch"
)

// EachURL calls do for each URL that a round of a day had to fetch, in the order of its files. It returns an error if
// the day has no such round.
func (c *Collection) EachURL(ctx context.Context, date string, round int, do func(in *batch.InURL) error) error {
	dir := batch.RoundFolder(c.asCollection(), "in", date, round)
	names, err := batch.ListFiles(ctx, c.place, dir)
	if err != nil {
		return err
	}
	if len(names) == 0 {
		return fmt.Errorf("collection %s has no round %d on %s: %s has no files", c.Code, round, date, dir)
	}
	return batch.EachRecord(ctx, c.place, names, func(r batch.Record) error {
		in, err := batch.ReadInURL(r.Key, r.Value)
		if err != nil {
			return err
		}
		return do(&in)
	})
}
