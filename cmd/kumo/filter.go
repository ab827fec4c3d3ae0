package main

import (
	"context"
	"os"
	"slices"
	"strings"
	"sync"

	"kumo/internal/app/job"
	"kumo/internal/app/setting"
	"kumo/internal/base/stats"
	"kumo/internal/engine/filter"
	"kumo/internal/engine/filter/ask"
	"kumo/internal/engine/filter/star"
)

func checkFilters(c *setting.Filter) error {
	switch {
	case c.Procs < 0:
		return usagef("--filter-procs is %d: give a number of processes, at least 1", c.Procs)
	case c.Timeout <= 0:
		return usagef("--filter-timeout must be greater than zero")
	}
	for _, command := range c.Commands {
		if command == "" { // which removes the saved one
			continue
		}
		look := filter.CheckCommand
		if isScript(command) {
			look = star.Check
		}
		if err := look(command); err != nil {
			return usagef("--%w", err)
		}
	}
	return nil
}

// filters are the filter programs and scripts of a crawl.
type filters []programFilter

type programFilter interface {
	ask.Filter
	Resume(was stats.FilterCounts)
	Counts() stats.FilterCounts
	Close()
}

// isScript reports whether a command is a Starlark file, which runs in this process.
func isScript(command string) bool { return strings.HasSuffix(command, ".star") }

func openFilter(ctx context.Context, cfg filter.Config) (programFilter, error) {
	if isScript(cfg.Command) {
		return star.Open(cfg)
	}
	return filter.Open(ctx, cfg)
}

// openFilters starts all filter programs concurrently, before anything is fetched.
func openFilters(ctx context.Context, c *setting.Filter, crawl string, log func(string)) (filters, error) {
	commands := slices.DeleteFunc(slices.Clone(c.Commands), func(command string) bool { return command == "" })
	names := filter.Names(commands)
	all, errs := make(filters, len(commands)), make([]error, len(commands))
	var begun sync.WaitGroup
	for i, command := range commands {
		begun.Go(func() {
			cfg := filter.Config{Command: command, Name: names[i], Crawl: crawl, Procs: c.Procs, Timeout: c.Timeout,
				Memory: c.Memory, Default: filter.Default(c.Default), Env: filter.Environ(os.Environ()), Log: log, Check: ask.Check}
			if one, err := openFilter(ctx, cfg); err != nil {
				errs[i] = err
			} else {
				all[i] = one
			}
		})
	}
	begun.Wait()
	for _, err := range errs {
		if err != nil {
			all.close()
			return nil, err
		}
	}
	return all, nil
}

func (all filters) close() {
	var ended sync.WaitGroup
	for _, one := range all {
		if one != nil { // nil if it failed to start
			ended.Go(one.Close)
		}
	}
	ended.Wait()
}

func (all filters) addTo(j *job.Job) {
	if len(all) == 0 {
		return
	}
	j.Hooks = ask.Hooks(all)
	j.AnchorText = j.Hooks.Link != nil
	for _, one := range all {
		if c := one.Choice(); c.Asks(filter.Record) && c.Wants(filter.WantBody) {
			j.Crawl.DecodeAll = true
		}
	}
	j.Filters = &job.Filters{Records: j.Hooks.Record != nil, Restore: all.resumeCounts, Counts: all.counts}
}

func (all filters) counts() (counts []stats.FilterCounts) {
	for _, p := range all {
		counts = append(counts, p.Counts())
	}
	return counts
}

func (all filters) resumeCounts(was []stats.FilterCounts) {
	for _, p := range all {
		for _, c := range was {
			if c.Filter == p.Name() {
				p.Resume(c)
				break
			}
		}
	}
}
