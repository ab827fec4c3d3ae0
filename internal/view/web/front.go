package web

import (
	"html/template"
	"net/http"

	"kumo/internal/base/stats"
	"kumo/internal/state/frontier"
)

// front is the page at /, which says what this is and where the rest lies.
func front(src Source) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
		_ = frontPage.Execute(w, struct { // who asked may have gone
			Name     string
			Totals   stats.Snapshot
			Bytes    string
			Frontier frontier.Counts
			Known    int
		}{src.Name, src.Totals(), stats.Bytes(src.Totals().Bytes), src.Frontier(), src.Known()})
	}
}

var frontPage = template.Must(template.New("front").Parse(`<!DOCTYPE html>
<html lang="en"><meta charset="utf-8"><title>kumo {{.Name}}</title>
<style>body{font:16px sans-serif;margin:2em;max-width:40em}td{padding:.1em 1.5em .1em 0}td:nth-child(2){text-align:right}</style>
<h1>kumo {{.Name}}</h1>
<table>
<tr><td>pages<td>{{.Totals.Pages}}<td>URLs that were answered ({{.Bytes}})
<tr><td>errors<td>{{.Totals.Failed}}<td>URLs that got no answer
<tr><td>hosts active<td>{{.Frontier.Active}}<td>with a request under way
<tr><td>hosts waiting<td>{{.Frontier.Waiting}}<td>whose delay has not passed, or for whom no worker is free
<tr><td>hosts backing off<td>{{.Frontier.Backing}}<td>left alone for longer, after failures or at their wish
<tr><td>URLs waiting<td>{{.Frontier.URLs}}<td>in the queues of their hosts
<tr><td>URLs known<td>{{.Known}}<td>met within reach, fetched or not
</table>
<p><a href="/metrics">/metrics</a>: these and more for Prometheus
<p><a href="/debug/pprof/">/debug/pprof/</a>: profiles for <code>go tool pprof</code>
`))
