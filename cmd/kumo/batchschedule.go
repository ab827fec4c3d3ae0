package main

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"kumo/internal/archive/place"
	"kumo/internal/batch"
	"kumo/internal/batch/collection"
	"kumo/internal/batch/collection/schedule"
)

const batchScheduleLong = `Crawl the collections in CONFIG, YAML files or folders of them, on schedule until
interrupted.

Schedules, in UTC like days:

  schedule: daily                each day at midnight
  schedule: "03:30"              each day at that time
  schedule: "30 3 * * mon-fri"   a cron expression: minute, hour, day of month, month, day of week

Each run is a kumo batch run of that day. A day is run once: a more frequent schedule finds the day
done, or resumes it after a failure. Collections that are due together are run together, and share
jobs. Collections with common seed sites are never in two runs at once, because only one run can be
polite to a site. Neither is a collection that another kumo process runs in the same place.

Missed runs are logged: the collection was still running or waiting when it was due again, or kumo
was not running. With --catch-up, runs missed while kumo was not running are started at once.
Unfinished days are always resumed at startup.

Ctrl-C, or SIGTERM, stops it. Running jobs are dropped, and the next start resumes them.`

type batchScheduleOptions struct {
	batchOptions
	atOnce  int
	catchUp bool
}

func batchScheduleCommand() *cobra.Command {
	o := &batchScheduleOptions{}
	cmd := &cobra.Command{Use: "schedule [flags] CONFIG...", Short: "Crawl collections on schedule",
		Long:    batchScheduleLong,
		Example: "  kumo batch schedule --contact https://me.example/bot --place /data/news collections/",
		Args:    someCollections, RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args) }}
	cmd.Flags().IntVar(&o.atOnce, "at-once", 2,
		"run up to `N` batches at once, of collections without common sites")
	cmd.Flags().BoolVar(&o.catchUp, "catch-up", false, "at startup, run days missed while kumo was not running")
	o.bind(cmd)
	return cmd
}

func (o *batchScheduleOptions) run(cmd *cobra.Command, args []string) error {
	if o.atOnce < 1 {
		return usagef("--at-once %d: a number from 1 is wanted", o.atOnce)
	}
	if err := o.check(cmd); err != nil {
		return err
	}
	all, err := o.load(args)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(all, func(c *collection.Collection) bool { return c.Schedule != "" }) {
		return usagef("no collection has a schedule: add one to its file, such as schedule: \"03:30\"")
	}
	pipeline, show, err := o.open(cmd.Context())
	if err != nil {
		return err
	}
	defer show.End()
	for _, c := range all {
		if c.Schedule == "" {
			show.Log.Warn("a collection has no schedule: it is not run", "collection", c.Code)
		}
	}
	r := &schedule.Runner{Collections: all, MaxRuns: o.atOnce, CatchUp: o.catchUp, Listener: show.ScheduleListener(),
		Run: func(ctx context.Context, day string, group []*collection.Collection) error {
			p := *pipeline
			p.Collections, p.Date = group, day
			return p.Run(ctx)
		},
		LastRun: func(ctx context.Context, c *collection.Collection) (schedule.LastRun, error) {
			return lastDay(ctx, pipeline.Place, c)
		}}
	return r.Loop(cmd.Context())
}

func lastDay(ctx context.Context, at place.Place, c *collection.Collection) (last schedule.LastRun, err error) {
	days, err := batch.Days(ctx, at, c, "in")
	if err != nil || len(days) == 0 {
		return last, err
	}
	last.Day = days[len(days)-1]
	s, err := batch.ReadState(ctx, at, c, last.Day)
	if err != nil || s == nil {
		return last, err
	}
	last.Started, last.Done = s.Began, s.IsDone()
	return last, nil
}
