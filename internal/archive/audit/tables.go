package audit

// A Table describes a table.
type Table struct {
	Name    string // of the file, without .csv
	Title   string // for people
	Columns []string
}

// A tableID is an index of Tables.
type tableID int

const (
	brokenLinks tableID = iota
	redirects
	orphans
	titles
	descriptions
	canonicals
	languages
	directives
	duplicates
	slow
	large
	insecure
	sitemaps
	numTables
)

// Tables are the tables of an audit.
var Tables = [numTables]Table{
	brokenLinks: {"broken", "broken links", []string{"url", "status", "error", "redirects", "from", "kind", "text"}},
	redirects: {"redirects", "redirect chains",
		[]string{"url", "links", "redirects", "end", "status", "error", "broken", "steps"}},
	orphans:      {"orphans", "orphans", []string{"url", "status", "error", "redirects", "sitemap"}},
	titles:       {"titles", "titles", []string{"problem", "url", "title", "characters"}},
	descriptions: {"descriptions", "descriptions", []string{"problem", "url", "description", "characters"}},
	canonicals:   {"canonical", "canonical URLs", []string{"problem", "url", "canonical", "status", "leads_to"}},
	languages:    {"hreflang", "hreflang", []string{"problem", "url", "lang", "target", "status", "leads_to"}},
	directives:   {"directives", "directives for robots", []string{"directive", "url", "robots"}},
	duplicates:   {"duplicates", "duplicate pages", []string{"url", "same_as", "digest", "bytes"}},
	slow:         {"slow", "slow URLs", []string{"url", "total_ms", "first_byte_ms", "connect_ms", "bytes"}},
	large:        {"large", "large URLs", []string{"url", "bytes", "type", "total_ms"}},
	insecure:     {"insecure", "http links on https pages", []string{"from", "url", "kind"}},
	sitemaps: {"sitemaps", "sitemap entries that redirect or fail",
		[]string{"problem", "url", "status", "leads_to", "sitemap"}},
}
