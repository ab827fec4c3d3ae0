package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"kumo/internal/app/job"
	"kumo/internal/base/settings"
	"kumo/internal/content/policy"
)

// overrides is a flag for settings by host: YAML, or @FILE. Its values are overrides in their one form, a line each.
type overrides struct{ texts *[]string }

var _ pflag.SliceValue = (*overrides)(nil)

const maxOverrideFile = 64 << 20

func (o *overrides) Type() string { return "YAML" }

func (o *overrides) String() string {
	if o.texts == nil {
		return ""
	}
	return strings.Join(*o.texts, ",")
}

// Set adds to the overrides.
func (o *overrides) Set(text string) error {
	if strings.TrimSpace(text) == "" {
		return nil
	}
	name, isFile := strings.CutPrefix(text, "@")
	if isFile {
		data, err := readSome(name, maxOverrideFile)
		if err != nil {
			return err
		}
		text = string(data)
	}
	all, err := policy.ParseOverrides(text)
	if err != nil && isFile {
		return fmt.Errorf("%s: %w", name, err)
	}
	for _, one := range all {
		*o.texts = append(*o.texts, one.Text)
	}
	return err
}

func readSome(name string, most int64) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(data)) > most {
		err = fmt.Errorf("%s: more than %d bytes", name, most)
	}
	return data, err
}

// Append is Set.
func (o *overrides) Append(text string) error { return o.Set(text) }

// Replace sets the overrides.
func (o *overrides) Replace(texts []string) error {
	*o.texts = nil
	for _, text := range texts {
		if err := o.Set(text); err != nil {
			return err
		}
	}
	return nil
}

// GetSlice are the overrides, a line each.
func (o *overrides) GetSlice() []string { return *o.texts }

// readOverrides puts the overrides that were given in force.
func (o *options) readOverrides() error {
	var all []*policy.Override
	for _, text := range o.overrides {
		more, err := policy.ParseOverrides(text)
		if err != nil {
			return usagef("--%s: %v", job.OverrideKey, err)
		}
		all = append(all, more...)
	}
	return o.job.SetOverrides(all)
}

// redactOverride is an override without its secrets.
func redactOverride(text string) string {
	all, err := policy.ParseOverrides(text)
	if err != nil || len(all) != 1 {
		return text
	}
	return job.RedactOverride(all[0])
}

// checkSecrets is checkShared of settings that are to be shared.
func checkSecrets(wishes []settings.Setting) error {
	o := &options{}
	for _, s := range wishes {
		if s.Key == job.OverrideKey {
			o.overrides = s.Values
		}
	}
	if err := o.readOverrides(); err != nil {
		return err
	}
	return o.checkShared()
}

// checkLate refuses overrides that nodes which run cannot take.
func checkLate(wishes []settings.Setting, was map[string][]string) error {
	o, next := &options{}, &options{}
	all := crawlFlags(o)
	for _, key := range []string{"scope", "depth", "max-pages-per-host", "per-host", job.SlicesKey, job.OverrideKey} {
		if len(was[key]) > 0 {
			if err := setFlag(all, settings.Setting{Key: key, Values: was[key]}); err != nil {
				return err
			}
		}
	}
	for _, s := range wishes {
		if s.Key == job.OverrideKey {
			next.overrides = s.Values
		}
	}
	if err := errors.Join(o.finish(), next.readOverrides()); err != nil {
		return err
	}
	if err := o.job.CheckLate(next.job.Crawl.Overrides.All()); err != nil {
		return usagef("%s: %w", job.OverrideKey, err)
	}
	return nil
}

// checkShared refuses overrides with secrets, where they would lie in the registry.
func (o *options) checkShared() error {
	for _, one := range o.job.Crawl.Overrides.All() {
		if job.RedactOverride(one) != one.Text {
			return usagef("--%s: match %s: it has a secret, and what nodes share lies in their registry: give kumo node "+
				"--header, --proxy or --login", job.OverrideKey, one.Name)
		}
	}
	return nil
}
