package links

import (
	"context"
	"encoding/binary"
	"errors"
	"iter"

	"kumo/internal/base/page"
)

// InlinkQuery returns a query that calls tell with each URL that other pages link to, sorted, and the number of these
// links. A page counts once for each kind of link. Not links are entries of sitemaps and feeds, canonical URLs, and
// links to other languages.
func (f *Finder) InlinkQuery(tell func(url string, links int64) error) *Query {
	q := f.newQuery("inlinks", sumCounts)
	one := binary.AppendUvarint(nil, 1)
	q.visit = func(p *pageLinks, l *outlink) error {
		if kind, known := page.ParseKind(l.kind); !known || !leads(kind) || l.to == p.url {
			return nil
		}
		return q.sorter.Add(0, []byte(l.to), one)
	}
	q.finish = func(ctx context.Context) error {
		var url []byte
		var sum int64
		err := q.sorter.Each(ctx, func(key, value []byte) error {
			n, err := count(value)
			if err != nil {
				return err
			}
			if string(key) != string(url) {
				if len(url) > 0 {
					if err := tell(string(url), sum); err != nil {
						return err
					}
				}
				url, sum = append(url[:0], key...), 0
			}
			sum += n
			return nil
		})
		if err != nil || len(url) == 0 {
			return err
		}
		return tell(string(url), sum)
	}
	return q
}

// count parses a record's value.
func count(value []byte) (int64, error) {
	n, size := binary.Uvarint(value)
	if size <= 0 {
		return 0, errors.New("links: a record has no count")
	}
	return int64(n), nil
}

// sumCounts combines the records of a URL.
func sumCounts(_ []byte, values iter.Seq[[]byte], emit func([]byte) error) error {
	var sum int64
	for v := range values {
		n, err := count(v)
		if err != nil {
			return err
		}
		sum += n
	}
	return emit(binary.AppendUvarint(nil, uint64(sum)))
}
