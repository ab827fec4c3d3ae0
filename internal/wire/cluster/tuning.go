package cluster

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"kumo/internal/wire"
)

// settle goes by the settings that the crawl's record has now, as far as they may change while it runs.
func (l *session) settle(settings map[string][]string) {
	settle := l.n.opts.Settle
	l.counter.setLimit(settings)
	if settle == nil || maps.EqualFunc(settings, l.settings, slices.Equal) {
		return
	}
	job := *l.n.job
	err := settle(&job, settingsOf(settings))
	if err == nil {
		err = l.crawl.Tune(&job)
	}
	if err != nil {
		l.n.opts.Log.Warn("this node does not go by the crawl's new settings", "err", err)
		return
	}
	for _, key := range changed(l.settings, settings) {
		l.n.opts.Log.Info("a setting of the crawl is another one", "setting", key, "was", l.settings[key], "is",
			settings[key])
	}
	l.settings = settings
}

// errSettings says that the crawl was started with settings that are read when a node begins, and are others than this
// one began with.
var errSettings = errors.New("the crawl's settings are others now")

// stillTrue returns errSettings if the node must begin anew for settings.
func (l *session) stillTrue(settings map[string][]string) error {
	if l.n.opts.Settle == nil {
		return nil
	}
	for _, key := range changed(l.settings, settings) {
		if !slices.Contains(wire.Tunable, key) {
			return fmt.Errorf("%w: %s", errSettings, key)
		}
	}
	return nil
}

// changed are the keys that have other values.
func changed(was, is map[string][]string) (keys []string) {
	for key, values := range is {
		if !slices.Equal(values, was[key]) {
			keys = append(keys, key)
		}
	}
	for key := range was {
		if _, there := is[key]; !there {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}
