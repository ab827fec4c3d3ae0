package text

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"strconv"
	"text/tabwriter"
	"time"

	"kumo/internal/app/inspect"
)

// Hosts lists the hosts of a crawl that have pending URLs.
func Hosts(w io.Writer, asJSON bool, hosts iter.Seq2[inspect.Host, error]) error {
	_, err := list(w, asJSON, hosts, "waiting\thost\tnext\tfor\tfailures", func(h *inspect.Host) string {
		return fmt.Sprintf("%d\t%s\t%s\t%s\t%d", h.Waiting, h.Key, Time(h.Next), h.For, h.Failures)
	})
	return err
}

// Queue lists the pending URLs of a host.
func Queue(w io.Writer, asJSON bool, items iter.Seq2[inspect.Item, error]) error {
	_, err := list(w, asJSON, items, "depth\tpath\ttries\turl\tfrom", func(it *inspect.Item) string {
		return fmt.Sprintf("%d\t%s\t%d\t%s\t%s", it.Depth, it.Path, it.Tries, it.URL, it.From)
	})
	return err
}

// Known lists known URLs, and returns how many there are.
func Known(w io.Writer, asJSON bool, urls iter.Seq2[inspect.Known, error]) (n int, err error) {
	return list(w, asJSON, urls, "", func(k *inspect.Known) string {
		line := fmt.Sprintf("%s  %s, depth %d, since %s", k.URL, k.State, k.Depth, Time(k.Since))
		if !k.Fetched.IsZero() {
			line += fmt.Sprintf(", status %d at %s", k.Status, Time(k.Fetched))
		}
		return line
	})
}

// Top lists the most important URLs, or sites by their most important URL.
func Top(w io.Writer, asJSON, bySite bool, urls iter.Seq2[inspect.Important, error]) error {
	head, row := "importance\tstatus\tdepth\turl", func(i *inspect.Important) string {
		return fmt.Sprintf("%.4g\t%s\t%d\t%s", i.Importance, statusWord(i), i.Depth, i.URL)
	}
	if bySite {
		head, row = "importance\tsum\turls\tnot fetched\thost\tmost important", func(i *inspect.Important) string {
			return fmt.Sprintf("%.4g\t%.4g\t%d\t%d\t%s\t%s", i.Importance, i.Sum, i.URLs, i.Waiting, i.Site, i.URL)
		}
	}
	_, err := list(w, asJSON, urls, head, row)
	return err
}

// list prints values as they arrive or, if there is a head, as a table that is complete only after the last value. It
// returns the number of values.
func list[T any](w io.Writer, asJSON bool, values iter.Seq2[T, error], head string, row func(*T) string) (n int,
	err error) {
	if head != "" && !asJSON {
		tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		defer func() { err = errors.Join(err, tab.Flush()) }()
		fmt.Fprintln(tab, head)
		w = tab
	}
	for v, err := range values {
		if err == nil && asJSON {
			err = JSON(w, v)
		} else if err == nil {
			_, err = fmt.Fprintln(w, row(&v))
		}
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// statusWord returns a URL's status, if it has one.
func statusWord(i *inspect.Important) string {
	switch {
	case i.Status > 0:
		return strconv.Itoa(i.Status)
	case i.Fetched:
		return "failed"
	}
	return "-"
}

// Time formats a time in UTC, to the second.
func Time(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05Z") }

// JSON writes a value as a line of JSON.
func JSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}
