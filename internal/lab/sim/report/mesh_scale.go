package report

import (
	"fmt"
	"io"

	"kumo/internal/lab/sim"
	"kumo/internal/lab/sim/experiments"
)

// MeshScale prints what nodes exchange as they become more, and writes the table and the picture.
func MeshScale(out io.Writer, to *Folder, s *experiments.MeshScale, rows []experiments.MeshScaleRow) error {
	var w sheet
	w.printf("Nodes stay for %v on average where they come and go; seed %d\n", s.Stay, s.Seed)
	w.grid("The overlay alone: look-ups, a node's table, and what a node sends in a second", func(tab io.Writer) {
		fmt.Fprintln(tab, "nodes\tknown at once\thops of others\tquestions\tright\tcontacts\tbuckets\t"+
			"quiet: messages\tbytes\tchurn: messages\tbytes\t")
		for _, r := range rows {
			fmt.Fprintf(tab, "%d\t%s\t%.2f\t%.1f\t%s\t%.1f\t%.1f\t%.2f\t%.0f\t%.2f\t%.0f\t\n", r.Nodes, percent(r.Direct),
				r.Hops, r.Asked, percent(r.Right), r.Contacts, r.Buckets, r.Quiet.Messages, r.Quiet.Bytes, r.Churn.Messages,
				r.Churn.Bytes)
		}
	})
	w.grid("The whole machine: messages a page of a crawl, URLs in a node's history after it, and what a node "+
		"sends in a second\nthen, but for the overlay", func(tab io.Writer) {
		fmt.Fprintln(tab, "nodes\tmesh\tlinks\toverlay\thops\thistory\t"+
			"quiet: messages\tbytes\tchurn: messages\tbytes\tURLs copied\tnodes gone\t")
		for _, r := range rows {
			if !r.Whole {
				fmt.Fprintf(tab, "%d\tnot run\t\t\t\t\t\t\t\t\t\t\t\n", r.Nodes)
				continue
			}
			c := r.Crawl
			fmt.Fprintf(tab, "%d\t%.1f\t%.1f\t%.1f\t%.2f\t%.0f\t%.2f\t%.0f\t%.2f\t%.0f\t%d\t%d\t\n", r.Nodes,
				c.PageMessages[sim.MeshMessage], c.PageMessages[sim.LinksMessage], c.PageMessages[sim.OverlayMessage], c.Hops,
				c.Known, c.Rest.Messages, c.Rest.Bytes, c.Churn.Messages, c.Churn.Bytes,
				c.Copied, c.Gone)
		}
	})
	return w.finish(out, to, []experiments.Table{s.Table(rows)}, []experiments.Named{s.Picture(rows)})
}
