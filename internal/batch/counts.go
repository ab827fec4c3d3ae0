package batch

import (
	"context"
	"path"
)

// Counts are the results of a day of a collection, stored in counts.json beside its XML.
type Counts struct {
	Collection string           `json:"collection"`
	Date       string           `json:"date"`
	Rounds     int              `json:"rounds"`
	Sites      int              `json:"sites"`  // registered domains with pages in the collection's language
	Counts     map[string]int64 `json:"counts"` // counters of merge and xml: "pages", "bytes", "kept", "charset gbk", …
}

func (p *Pipeline) writeCounts(ctx context.Context, pt *collectionDay) error {
	sites, err := p.writeIndexes(ctx, pt)
	if err != nil {
		return err
	}
	c := Counts{Collection: pt.Code, Date: p.Date, Rounds: pt.state.Next.Round, Sites: sites, Counts: map[string]int64{}}
	for i := range pt.state.Done {
		if d := &pt.state.Done[i]; d.Job == JobMerge || d.Job == JobXML {
			for name, n := range d.Counters {
				c.Counts[name] += n
			}
		}
	}
	return writeJSON(ctx, p.Place, path.Join(DayFolder(pt.Collection, "xml", p.Date), CountsName), &c)
}
