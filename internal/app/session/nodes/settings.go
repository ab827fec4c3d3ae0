package nodes

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"kumo/internal/app/setting"
	"kumo/internal/base/settings"
)

// applySettings applies the settings of the crawl's record that may change during the run.
func (m *membership) applySettings(now map[string][]string) {
	settle := m.n.ApplySettings
	m.counter.setLimits(setting.LimitsOf(now))
	if settle == nil || maps.EqualFunc(now, m.settings, slices.Equal) {
		return
	}
	j := *m.n.job
	err := settle(&j, settings.FromMap(now))
	if err == nil {
		err = m.crawl.Tune(&j)
	}
	if err != nil {
		m.n.Log.Warn("cannot apply the crawl's new settings", "err", err)
		return
	}
	for _, key := range changed(m.settings, now) {
		m.n.Log.Info("a setting of the crawl has changed", "setting", key, "was", m.settings[key], "is", now[key])
	}
	m.settings = now
}

// errSettings means that the crawl was started with other settings, which a node only reads at its start.
var errSettings = errors.New("the crawl's settings have changed")

// checkSettings returns errSettings if the node must restart to apply the settings.
func (m *membership) checkSettings(settings map[string][]string) error {
	if m.n.ApplySettings == nil {
		return nil
	}
	for _, key := range changed(m.settings, settings) {
		if s := setting.Find(key); s == nil || s.Change != setting.Live {
			return fmt.Errorf("%w: %s", errSettings, key)
		}
	}
	return nil
}

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
