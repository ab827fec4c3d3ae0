package main

import (
	"context"
	"os"

	"kumo/internal/app/job"
	"kumo/internal/view/telemetry"
)

// openTelemetry opens the export of traces and metrics that the environment configures; nil if it does not.
func openTelemetry(ctx context.Context, crawl, node string, show *console) (*telemetry.Exporter, error) {
	return telemetry.Open(ctx, telemetry.Config{Getenv: os.Getenv, Version: job.Version, Crawl: crawl, Node: node,
		Log: show.log})
}

// flushTelemetry exports the metrics at once. A failure does not concern the crawl.
func flushTelemetry(e *telemetry.Exporter, show *console) {
	if err := e.Flush(); err != nil {
		show.log.Warn(err.Error())
	}
}

// closeTelemetry exports the rest. A failure does not concern the crawl.
func closeTelemetry(e *telemetry.Exporter, show *console) {
	if err := e.Close(); err != nil {
		show.log.Warn(err.Error())
	}
}
