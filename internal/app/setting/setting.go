// Package setting is the table of a crawl's settings. Each is one entry of All: its key, type, default, help, whom it
// concerns and when it may change. The flags of kumo crawl and of the commands that share them, the environment,
// configuration files, kumo set, the settings that a crawl's folder keeps, options of package kumo, completion and
// docs/reference/settings.md all follow from it.
//
// To add a setting, add a field to the job (or to Values) and an entry to All, and use the field.
package setting

import (
	"math"
	"slices"
	"time"

	"kumo/internal/app/job"
	"kumo/internal/base/settings"
)

// Values holds what the settings of a crawl are set to: those of the job that can be set directly, and in text those
// that need the network, files or other settings to be understood.
type Values struct {
	Job job.Job

	InputFile    string
	SkipBadSeeds bool
	Config       string
	Out          string
	Work         string // the local folder of a crawl whose files are uploaded
	KeepLocal    bool
	PlaceWait    time.Duration
	Text, Index  bool
	Fields       string
	Extract      []string // TYPE=URL of servers that read documents
	Filter       Filter
	Browser      Browser
	Recrawl      []string
	Due          bool
	Overrides    []string // in canonical form
	Headers      []string
	Cookies      string
	Login        string
	Proxies      []string
	Sinks        []string
	SinkWait     time.Duration
	Metrics      string
	UI           UI
	Profile      string
	DryRun       bool
	Verbose      bool
	Quiet        bool
	LogJSON      bool
}

// Filter has the settings of external filters.
type Filter struct {
	Commands []string
	Procs    int
	Timeout  time.Duration
	Memory   int64  // bytes
	Default  string // one of filter.Defaults
}

// Browser has the settings of the browser that renders pages.
type Browser struct {
	Path      string
	NoSandbox bool
	Pages     int // at once; 0: by processors and memory
	Timeout   time.Duration
	Behavior  string // name of a file
}

// UI has the settings of a crawl's web page.
type UI struct {
	Addr, Cert, Key string
	NoToken         bool
}

// A Scope determines which machines of a crawl share a setting.
type Scope string

// The scopes. Crawl settings are stored in the cluster's registry, so none of them may be a secret.
const (
	Crawl Scope = "crawl" // the same on all nodes: kumo start takes it
	Node  Scope = "node"  // each node has its own: kumo node takes it
	Alone Scope = "alone" // for a crawl on one machine: neither takes it
)

// A Change determines when a setting may change after the crawl has started.
type Change string

// The times. A crawl's folder stores all settings except PerRun ones.
const (
	Live    Change = "live"     // at any time, with kumo set
	NextRun Change = "next run" // at the next start of the crawl or node
	Grow    Change = "grow"     // at the next start, if more URLs are admitted
	Fixed   Change = "fixed"    // never: the crawl has already excluded, written or named something by it
	PerRun  Change = "per run"  // applies to one run only
)

// A Setting is an entry of the table.
type Setting struct {
	Key    string // the flag, the key in a configuration file and, in upper case after KUMO_, the environment variable
	Short  string // one-letter flag
	Group  Group
	Basic  bool // listed in kumo crawl --help; the others are in --help-all
	Scope  Scope
	Change Change

	FlagOnly bool   // not allowed in a configuration file
	Unsaved  bool   // a crawl on one machine does not store it in its folder; each run needs it again
	Mirror   bool   // also a flag of kumo mirror
	Option   string // the option of package kumo
	Help     string // an imperative or a noun phrase; the value's name is in backquotes
	Default  string // in command-line notation; "" for the type's zero value
	NoValue  string // meaning of the flag without a value; "" if it needs one

	// Widens reports whether the crawl admits URLs, or writes things, with now that it did not with was; nil if a change
	// of the setting never has this effect. Each is as Get returns it.
	Widens func(was, now []string) bool
	// Value gives access to the setting in v.
	Value func(v *Values) Value
}

// A Group is a heading of --help and of docs/reference/settings.md.
type Group string

// The groups, in order.
const (
	Seeds      Group = "Seeds and folder"
	Scoping    Group = "URLs to follow"
	Limits     Group = "Limits"
	Traps      Group = "Traps and large domains"
	Politeness Group = "Politeness"
	Revisits   Group = "Order and recrawls"
	Requests   Group = "Requests"
	Network    Group = "Network"
	Output     Group = "Output"
	Places     Group = "Storage elsewhere and sinks"
	Filters    Group = "Filters"
	Rendering  Group = "Rendering"
	Resources  Group = "Memory and disk"
	Observing  Group = "Progress and logs"
)

// Groups are all groups, in order.
var Groups = []Group{Seeds, Scoping, Limits, Politeness, Requests, Output, Revisits, Traps, Network, Places, Filters,
	Rendering, Resources, Observing}

// Keys of a configuration file that are not settings: the seeds, and the files of further seeds, for information only.
const (
	SeedsKey = "seeds"
	FilesKey = "seed-files"
)

// Find returns the setting with a key; nil if there is none.
func Find(key string) *Setting {
	if i := slices.IndexFunc(All, func(s Setting) bool { return s.Key == key }); i >= 0 {
		return &All[i]
	}
	return nil
}

// Keys returns the keys of the settings that satisfy a condition, in order.
func Keys(holds func(*Setting) bool) (keys []string) {
	for i := range All {
		if holds(&All[i]) {
			keys = append(keys, All[i].Key)
		}
	}
	return keys
}

// LiveKeys returns the keys of the settings that may change while the crawl runs.
func LiveKeys() []string { return Keys(func(s *Setting) bool { return s.Change == Live }) }

// Lasting reports whether the crawl has excluded, written or named something by the setting, so that it cannot change
// freely after the start.
func (s *Setting) Lasting() bool { return s.Change == Fixed || s.Change == Grow }

// Reset sets all settings to their defaults.
func (v *Values) Reset() {
	for i := range All {
		s := &All[i]
		value := s.Value(v)
		if list, ok := value.(List); ok {
			_ = list.Replace(nil)
		}
		if s.Default != "" {
			if err := value.Set(s.Default); err != nil {
				panic("kumo: default of " + s.Key + ": " + err.Error()) // a mistake in the table, which its test finds
			}
		}
	}
}

// Get returns the values of a setting in the form stored in a folder: several for a list. "" means none.
func (s *Setting) Get(v *Values) []string {
	value := s.Value(v)
	if list, ok := value.(List); ok {
		return slices.Clone(list.GetSlice())
	}
	return []string{value.String()}
}

// Set sets a setting to values as returned by Get.
func (s *Setting) Set(v *Values, values []string) error {
	return assign(s.Value(v), values)
}

// Stored returns a setting in the form stored in a folder; false if it is not set.
func (s *Setting) Stored(v *Values) (settings.Setting, bool) {
	values := s.Get(v)
	return settings.Setting{Key: s.Key, Values: values}, len(values) > 0 && values[0] != ""
}

// Widens reports whether the crawl admits URLs, or writes things, with a setting's new values that it did not with the
// old ones.
func Widens(key string, was, now []string) bool {
	s := Find(key)
	return s != nil && s.Widens != nil && s.Widens(was, now)
}

func turnedOn(was, now []string) bool {
	return len(was) == 1 && len(now) == 1 && was[0] != now[0] && now[0] == "true"
}

func anotherFile(was, now []string) bool {
	return len(now) == 1 && now[0] != "" && !slices.Equal(was, now)
}

func more(was, now []string) bool {
	return slices.ContainsFunc(now, func(pattern string) bool { return !slices.Contains(was, pattern) })
}

func higherLimit(was, now []string) bool {
	return len(was) == 1 && len(now) == 1 && limitOf(was[0], true) < limitOf(now[0], true)
}

func higherDepth(was, now []string) bool {
	return len(was) == 1 && len(now) == 1 && limitOf(was[0], false) < limitOf(now[0], false)
}

// limitOf parses a limit: the largest number if there is none, -1 if it is invalid.
func limitOf(text string, zeroIsNone bool) int64 {
	if text == job.NoLimit {
		return math.MaxInt64
	}
	n := int64(0)
	if err := Size(&n).Set(text); err != nil {
		return -1
	}
	if n == 0 && zeroIsNone {
		return math.MaxInt64
	}
	return n
}
