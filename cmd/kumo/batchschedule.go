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

const batchScheduleLong = `Crawl the collections in CONFIG, YAML files or folders of them, each when its schedule says,
until interrupted.

Schedules, in UTC as days are:

  schedule: daily                each day at midnight
  schedule: "03:30"              each day at that time
  schedule: "30 3 * * mon-fri"   a cron expression: minute, hour, day of the month, month, day of the week

What runs is kumo batch run for the day. A day is run once: a schedule that comes oftener finds it done, or goes on
where it failed. Collections that are due together are run together, and share their jobs. Those that begin on the same
sites are never run by two runs at once, as only one run can be polite to a site; nor is one collection, also not by
another kumo on the same place.

Missed times are told: a collection was still run or waited when it was due again, or nobody was there. With --catch-up
what was missed while nobody was there is run at the beginning. Days that were begun and not ended go on at the
beginning in any case.

Ctrl-C, or SIGTERM, ends it: jobs under way are dropped, and the next start goes on with them.`

type batchScheduleOptions struct {
	batchOptions
	atOnce  int
	catchUp bool
}

func batchScheduleCommand() *cobra.Command {
	o := &batchScheduleOptions{}
	cmd := &cobra.Command{Use: "schedule [flags] CONFIG...", Short: "Crawl collections when their schedules say",
		Long:    batchScheduleLong,
		Example: "  kumo batch schedule --contact https://me.example/bot --place /data/news collections/",
		Args:    someCollections, RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args) }}
	cmd.Flags().IntVar(&o.atOnce, "at-once", 2,
		"let `N` runs be under way at once, of collections that have no site in common")
	cmd.Flags().BoolVar(&o.catchUp, "catch-up", false, "run what was missed while nobody was there")
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
		return usagef("no collection has a schedule: write one into its file, as in schedule: \"03:30\"")
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
