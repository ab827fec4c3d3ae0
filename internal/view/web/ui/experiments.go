package ui

import (
	"errors"
	"io/fs"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"kumo/internal/view/results"
)

// experiments serves the results of kumo sim: pages and REST API. They are read for each request, without a cache.
type experiments struct {
	roots []string // folders with results, or parents of such folders
	queue *queue   // of all of them
	out   *responder
}

// An experiment is a folder with results.
type experiment struct {
	name, dir string
}

// all lists the experiments in the roots and their direct subfolders.
func (h *experiments) all() (all []experiment) {
	seen := map[string]bool{}
	for _, root := range h.roots {
		dirs, _ := results.Find(root) // an unreadable root has no experiments
		for _, dir := range dirs {
			if seen[dir] {
				continue
			}
			seen[dir] = true
			name := freeName(dir, func(name string) bool {
				return slices.ContainsFunc(all, func(e experiment) bool { return e.name == name })
			})
			all = append(all, experiment{name, dir})
		}
	}
	return all
}

// Answers of the REST API.
type (
	experimentList struct {
		Experiments []experimentEntry `json:"experiments"`
	}
	experimentEntry struct {
		Name       string `json:"name"` // in URLs
		Folder     string `json:"folder"`
		Experiment string `json:"experiment,omitempty"`
		Command    string `json:"command,omitempty"`
		Tables     int    `json:"tables"`
		Pictures   int    `json:"pictures"`
		Statements int    `json:"statements"`
		Seen       int    `json:"seen"` // number of reproduced statements
		Error      string `json:"error,omitempty"`
	}
	experimentAnswer struct {
		Name   string `json:"name"`
		Folder string `json:"folder"`
		results.Experiment
	}
	tablePart struct {
		Columns []string   `json:"columns"`
		Rows    [][]string `json:"rows"`
		Next    *int64     `json:"next,omitempty"`
	}
)

var experimentParam = param{"path", "experiment", "string", "the experiment's name, as listed by /experiments", true}

func (h *experiments) endpoints() []endpoint {
	return []endpoint{
		{"/experiments", "experiments", "The experiments of kumo sim.", nil, experimentList{},
			func(*http.Request) (any, error) { return experimentList{h.entries()}, nil }},
		{"/experiments/{experiment}", "experiment",
			"An experiment: its command, the paper's statements with the measured results, its tables and plots.",
			[]param{experimentParam}, experimentAnswer{}, func(r *http.Request) (any, error) { return h.find(r) }},
		{"/experiments/{experiment}/tables/{table}", "table", "A table of an experiment, in parts.",
			[]param{experimentParam, {"path", "table", "string", "the table's file name", true},
				{"query", "cursor", "integer", "where to continue: \"next\" of the previous answer", false},
				limitParam}, tablePart{},
			listWithTarget(h.find, getTable)},
	}
}

func (h *experiments) views() map[string]view {
	return map[string]view{
		"/experiments":                             h.listPage,
		"/experiments/{experiment}":                withPathTarget(h.find, h.page),
		"/experiments/{experiment}/tables/{table}": withPathTarget(h.find, h.tablePage),
	}
}

// find returns the experiment in a path.
func (h *experiments) find(r *http.Request) (*experimentAnswer, error) {
	for _, x := range h.all() {
		if x.name != r.PathValue("experiment") {
			continue
		}
		e, err := results.Read(x.dir)
		if err != nil {
			return nil, &problem{http.StatusInternalServerError, "The experiment cannot be read", err.Error()}
		}
		e.Statements, e.Tables, e.Pictures = orEmpty(e.Statements), orEmpty(e.Tables), orEmpty(e.Pictures)
		return &experimentAnswer{x.name, x.dir, *e}, nil
	}
	return nil, &problem{http.StatusNotFound, "There is no such experiment", "/api/v1/experiments lists all"}
}

const mostExperiments = 1000

func (h *experiments) entries() []experimentEntry {
	list := []experimentEntry{}
	for _, x := range h.all() {
		if len(list) == mostExperiments {
			break
		}
		entry := experimentEntry{Name: x.name, Folder: x.dir}
		if e, err := results.Read(x.dir); err != nil {
			entry.Error = err.Error()
		} else {
			entry.Experiment, entry.Command, entry.Tables, entry.Pictures = e.Experiment, e.Command, len(e.Tables),
				len(e.Pictures)
			entry.Statements = len(e.Statements)
			for _, st := range e.Statements {
				if st.Seen {
					entry.Seen++
				}
			}
		}
		list = append(list, entry)
	}
	return list
}

func getTable(x *experimentAnswer, r *http.Request, n int) (*tablePart, error) {
	from, err := number(r, "cursor", 0)
	if err != nil {
		return nil, err
	}
	return x.table(r.PathValue("table"), from, n)
}

// table returns a part of a table that the experiment lists.
func (x *experimentAnswer) table(name string, from int64, n int) (*tablePart, error) {
	if !slices.Contains(x.Tables, name) {
		return nil, &problem{http.StatusNotFound, "The experiment has no such table",
			"give the name of one of its tables"}
	}
	rows, err := results.Table(x.Folder, name, from, n)
	switch {
	case errors.Is(err, results.ErrCursor):
		return nil, badRequest("cursor is %d: expected \"next\" of an answer", from)
	case errors.Is(err, fs.ErrNotExist):
		return nil, &problem{http.StatusNotFound, "The table is missing",
			"the file was removed: run the experiment again"}
	case err != nil:
		return nil, &problem{http.StatusInternalServerError, "The table cannot be read", err.Error()}
	}
	p := &tablePart{Columns: orEmpty(rows.Columns), Rows: rows.Rows}
	if rows.Next > 0 {
		p.Next = &rows.Next
	}
	return p, nil
}

func (h *experiments) listPage(_ *http.Request) (*filled, error) {
	return &filled{"experiments", struct {
		top
		Experiments []experimentEntry
	}{h.out.top(nil, "Experiments", "experiments"), h.entries()}}, nil
}

// A tableShown is the beginning of a table on the page of its experiment, or a table's own page.
type tableShown struct {
	Name, Link string
	*tablePart
	Error string
	More  string
}

const rowsBegun = 12 // rows per table on the page of an experiment

func (h *experiments) page(x *experimentAnswer, _ *http.Request) (*filled, error) {
	at := "/experiments/" + url.PathEscape(x.Name)
	p := struct {
		top
		X      *experimentAnswer
		At     string
		Tables []tableShown
	}{top: h.topOf(x, x.Experiment.Experiment), X: x, At: at}
	for _, name := range x.Experiment.Tables {
		t := tableShown{Name: name, Link: at + "/tables/" + url.PathEscape(name)}
		var err error
		if t.tablePart, err = x.table(name, 0, rowsBegun); err != nil {
			t.Error, t.tablePart = problemOf(err).Error(), nil
		} else if t.Next != nil {
			t.More = t.Link
		}
		p.Tables = append(p.Tables, t)
	}
	return &filled{"experiment", p}, nil
}

func (h *experiments) topOf(x *experimentAnswer, title string) top {
	t := h.out.top(nil, title, "experiment")
	t.Experiment, t.Folder = x.Name, x.Folder
	return t
}

func (h *experiments) tablePage(x *experimentAnswer, r *http.Request) (*filled, error) {
	name := r.PathValue("table")
	from, err := number(r, "cursor", 0)
	if err != nil {
		return nil, err
	}
	part, err := x.table(name, from, 4*defaultLimit)
	if err != nil {
		return nil, err
	}
	t := tableShown{Name: name, tablePart: part}
	if part.Next != nil {
		t.More = "?" + url.Values{"cursor": {strconv.FormatInt(*part.Next, 10)}}.Encode()
	}
	return &filled{"table", struct {
		top
		X     *experimentAnswer
		At    string
		T     tableShown
		First bool
	}{h.topOf(x, name), x, "/experiments/" + url.PathEscape(x.Name), t, r.FormValue("cursor") == ""}}, nil
}

// fileSandbox is a policy under which a browser only displays a file: its author is unknown. A picture cannot run or
// load anything, wherever it is opened.
const fileSandbox = "sandbox; default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"

// file serves a picture or a table of an experiment unchanged.
func (h *experiments) file(w http.ResponseWriter, r *http.Request) {
	data, kind, err := h.readFile(r)
	if err != nil {
		h.out.fail(w, r, err)
		return
	}
	w.Header().Set("Content-Security-Policy", fileSandbox)
	w.Header().Set("Content-Type", kind)
	_, _ = w.Write(data) // the client may have disconnected
}

// readFile reads a picture or a table and returns its media type.
func (h *experiments) readFile(r *http.Request) (data []byte, kind string, err error) {
	x, err := h.find(r)
	if err != nil {
		return nil, "", err
	}
	name := r.PathValue("file")
	switch ext := strings.ToLower(filepath.Ext(name)); {
	case ext == ".svg" && slices.ContainsFunc(x.Pictures, func(p results.Picture) bool { return p.File == name }):
		kind = "image/svg+xml"
	case slices.Contains(x.Experiment.Tables, name):
		kind = "text/plain; charset=utf-8"
	default:
		return nil, "", &problem{http.StatusNotFound, "The experiment has no such file", "its page lists its files"}
	}
	data, err = results.ReadFile(x.Folder, name, results.MaxFile)
	if errors.Is(err, fs.ErrNotExist) {
		err = &problem{http.StatusNotFound, "The file is missing", "it was removed: run the experiment again"}
	} else if err != nil {
		err = &problem{http.StatusInternalServerError, "The file cannot be read", err.Error()}
	}
	return data, kind, err
}
