package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kumo/internal/app/job"
	"kumo/internal/base/weburl"
)

// A most is a flag that is a number of things, negative where a person writes 0: without limit.
type most struct{ n *int64 }

func (m most) Set(text string) error {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return fmt.Errorf("%q is not a number of 0 or more", text)
	}
	*m.n = job.Bound(n)
	return nil
}

func (m most) String() string { return strconv.FormatInt(max(*m.n, 0), 10) }
func (m most) Type() string   { return "int" }

// A size is a flag in bytes: 500, 64KiB, 1.5GB.
type size struct{ n *int64 }

var units = []struct {
	suffix string
	bytes  float64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40},
	{"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12},
	{"K", 1e3}, {"M", 1e6}, {"G", 1e9}, {"T", 1e12}, {"B", 1},
}

func (s size) Set(text string) error {
	number, factor := strings.TrimSpace(text), 1.0
	for _, u := range units {
		if len(number) > len(u.suffix) && strings.EqualFold(number[len(number)-len(u.suffix):], u.suffix) {
			number, factor = strings.TrimSpace(number[:len(number)-len(u.suffix)]), u.bytes
			break
		}
	}
	n, err := strconv.ParseFloat(number, 64)
	if err != nil || n < 0 || n*factor > math.MaxInt64/2 {
		return fmt.Errorf("%q is not a size: write bytes, or a number with KB, KiB, MB, MiB, GB, GiB", text)
	}
	*s.n = int64(n * factor)
	return nil
}

func (s size) Type() string { return "SIZE" }

// String writes the largest unit that leaves a whole number.
func (s size) String() string {
	if s.n == nil || *s.n == 0 {
		return "0"
	}
	best, text := 0.0, strconv.FormatInt(*s.n, 10)
	for _, u := range units {
		if q := float64(*s.n) / u.bytes; len(u.suffix) > 1 && u.bytes > best && q == math.Trunc(q) {
			best, text = u.bytes, strconv.FormatInt(int64(q), 10)+u.suffix
		}
	}
	return text
}

// A scope is a flag for a weburl.Mode.
type scope struct{ mode *weburl.Mode }

func (s scope) Type() string { return "page|prefix|host|domain|any" }

func (s scope) String() string {
	if s.mode == nil {
		return weburl.ScopeHost.String()
	}
	return s.mode.String()
}

func (s scope) Set(text string) (err error) {
	*s.mode, err = weburl.ParseMode(text)
	return err
}

// rules is a flag for a set of weburl.Rules: a list, with commas or given several times.
type rules struct{ set *weburl.Rules }

var _ pflag.SliceValue = (*rules)(nil)

func (r *rules) Type() string { return "RULES" }

func (r *rules) String() string {
	if r.set == nil {
		return weburl.Rules(0).String()
	}
	return r.set.String()
}

// Set adds to the rules.
func (r *rules) Set(text string) error {
	more, err := weburl.ParseRules(text)
	*r.set |= more
	return err
}

// Append is Set.
func (r *rules) Append(text string) error { return r.Set(text) }

// Replace sets the rules.
func (r *rules) Replace(names []string) (err error) {
	*r.set, err = weburl.ParseRules(strings.Join(names, ","))
	return err
}

// GetSlice is the rules' names, or "none", which is a setting, too.
func (r *rules) GetSlice() []string { return strings.Split(r.set.String(), ",") }

// A choice is a flag with a few words for values.
type choice struct {
	value *string
	words []string
}

func (c choice) Type() string { return strings.Join(c.words, "|") }

func (c choice) String() string {
	if c.value == nil {
		return ""
	}
	return *c.value
}

func (c choice) Set(text string) error {
	for _, w := range c.words {
		if w == text {
			*c.value = text
			return nil
		}
	}
	return fmt.Errorf("%q is not one of %s", text, strings.Join(c.words, ", "))
}

// completeChoices has a shell complete the words of a command's choices, and of its subcommands'.
func completeChoices(cmd *cobra.Command) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		var words []string
		switch v := f.Value.(type) {
		case choice:
			words = v.words
		case scope:
			words = strings.Split(v.Type(), "|")
		default:
			return
		}
		// it fails only where a flag has its words already
		_ = cmd.RegisterFlagCompletionFunc(f.Name, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
	})
	for _, sub := range cmd.Commands() {
		completeChoices(sub)
	}
}

// A count is a flag for how many are to be listed.
type count struct{ n *int }

// counted sets n to what is listed unless the user says otherwise, and returns its flag.
func counted(n *int, ordinary int) count {
	*n = ordinary
	return count{n}
}

func (c count) Type() string { return "int" }

func (c count) String() string {
	if c.n == nil {
		return "0"
	}
	return strconv.Itoa(*c.n)
}

func (c count) Set(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return fmt.Errorf("%q is no number of things to list: 0 or more is wanted", text)
	}
	*c.n = n
	return nil
}
