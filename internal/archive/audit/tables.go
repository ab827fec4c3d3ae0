package audit

// A Table describes a table.
type Table struct {
	Name    string // of the file, without .csv
	Title   string // for people
	Columns []string
	List    bool // of all URLs, not of problems
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
	allPages
	numTables
)

// Tables are the tables of an audit.
var Tables = [numTables]Table{
	brokenLinks: {Name: "broken", Title: "broken links",
		Columns: []string{"url", "status", "error", "redirects", "from", "kind", "text"}},
	redirects: {Name: "redirects", Title: "redirect chains",
		Columns: []string{"url", "links", "redirects", "end", "status", "error", "broken", "steps"}},
	orphans: {Name: "orphans", Title: "orphans",
		Columns: []string{"url", "status", "error", "redirects", "sitemap"}},
	titles: {Name: "titles", Title: "titles", Columns: []string{"problem", "url", "title", "characters"}},
	descriptions: {Name: "descriptions", Title: "descriptions",
		Columns: []string{"problem", "url", "description", "characters"}},
	canonicals: {Name: "canonical", Title: "canonical URLs",
		Columns: []string{"problem", "url", "canonical", "status", "leads_to"}},
	languages: {Name: "hreflang", Title: "hreflang",
		Columns: []string{"problem", "url", "lang", "target", "status", "leads_to"}},
	directives: {Name: "directives", Title: "directives for robots", Columns: []string{"directive", "url", "robots"}},
	duplicates: {Name: "duplicates", Title: "duplicate pages", Columns: []string{"url", "same_as", "digest", "bytes"}},
	slow: {Name: "slow", Title: "slow URLs",
		Columns: []string{"url", "total_ms", "first_byte_ms", "connect_ms", "bytes"}},
	large:    {Name: "large", Title: "large URLs", Columns: []string{"url", "bytes", "type", "total_ms"}},
	insecure: {Name: "insecure", Title: "http links on https pages", Columns: []string{"from", "url", "kind"}},
	sitemaps: {Name: "sitemaps", Title: "sitemap entries that redirect or fail",
		Columns: []string{"problem", "url", "status", "leads_to", "sitemap"}},
	allPages: {Name: "pages", Title: "URLs with a response", List: true,
		Columns: []string{"url", "status", "type", "lang", "title", "h1", "description", "canonical", "robots", "hreflang",
			"depth", "inlinks", "links", "from", "redirects_to", "bytes", "total_ms", "first_byte_ms", "connect_ms", "digest",
			"content_digest", "near_duplicate_of", "time"}},
}

// inlinksColumn is the column of the table pages whose values come from the links.
const inlinksColumn = 11
