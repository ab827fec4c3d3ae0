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

// An experiment is one that is shown.
type experiment struct {
	name, dir string
}

// experiments are those that there are now: in the folders that were given, and directly in them.
func (s *Server) experiments() (all []experiment) {
	seen := map[string]bool{}
	for _, root := range s.cfg.Experiments {
		dirs, _ := results.Find(root) // of one that cannot be read nothing is shown
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

// The REST's answers.
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
		Seen       int    `json:"seen"` // of the statements
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

var (
	experimentParam     = param{"path", "experiment", "string", "the experiment's name, as /experiments lists it", true}
	experimentEndpoints = []endpoint{
		{"/experiments", "experiments", "The experiments of kumo sim that are shown.", nil, experimentList{},
			(*Server).giveExperiments},
		{"/experiments/{experiment}", "experiment",
			"An experiment: the command that made it, what the paper states against what was measured, its tables and pictures.",
			[]param{experimentParam}, experimentAnswer{}, (*Server).giveExperiment},
		{"/experiments/{experiment}/tables/{table}", "table", "A table of an experiment, in parts.",
			[]param{experimentParam, {"path", "table", "string", "the table's file", true},
				{"query", "cursor", "integer", "where to go on: \"next\" of the answer before", false}, limitParam}, tablePart{},
			(*Server).giveTable},
	}
)

// ofExperiment is the experiment that a path names.
func (s *Server) ofExperiment(r *http.Request) (*experimentAnswer, error) {
	for _, x := range s.experiments() {
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
	return nil, &problem{http.StatusNotFound, "There is no such experiment here", "/api/v1/experiments lists all"}
}

func (s *Server) giveExperiments(*http.Request) (any, error) {
	return experimentList{s.experimentEntries()}, nil
}

const mostExperiments = 1000

func (s *Server) experimentEntries() []experimentEntry {
	list := []experimentEntry{}
	for _, x := range s.experiments() {
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

func (s *Server) giveExperiment(r *http.Request) (any, error) { return s.ofExperiment(r) }

func (s *Server) giveTable(r *http.Request) (any, error) {
	x, err := s.ofExperiment(r)
	if err != nil {
		return nil, err
	}
	n, err := limit(r)
	if err != nil {
		return nil, err
	}
	from, err := number(r, "cursor", 0)
	if err != nil {
		return nil, err
	}
	return x.table(r.PathValue("table"), from, n)
}

// table is a part of a table, of those that the experiment says it has.
func (x *experimentAnswer) table(name string, from int64, n int) (*tablePart, error) {
	if !slices.Contains(x.Tables, name) {
		return nil, &problem{http.StatusNotFound, "The experiment has no such table", "name one of its tables"}
	}
	rows, err := results.Table(x.Folder, name, from, n)
	switch {
	case errors.Is(err, results.ErrCursor):
		return nil, badRequest("cursor is %d: \"next\" of an answer is wanted", from)
	case errors.Is(err, fs.ErrNotExist):
		return nil, &problem{http.StatusNotFound, "The table is not there", "the file has gone: make the experiment again"}
	case err != nil:
		return nil, &problem{http.StatusInternalServerError, "The table cannot be read", err.Error()}
	}
	p := &tablePart{Columns: orEmpty(rows.Columns), Rows: rows.Rows}
	if rows.Next > 0 {
		p.Next = &rows.Next
	}
	return p, nil
}

func (s *Server) experimentsPage(w http.ResponseWriter, _ *http.Request) error {
	s.render(w, http.StatusOK, "experiments", struct {
		top
		Experiments []experimentEntry
	}{s.top(nil, "Experiments", "experiments"), s.experimentEntries()})
	return nil
}

// A tableShown is a table as the page of its experiment begins it, or as a page of its own.
type tableShown struct {
	Name, Link string
	*tablePart
	Error string
	More  string
}

const rowsBegun = 12 // of each table on the page of an experiment

func (s *Server) experimentPage(w http.ResponseWriter, r *http.Request) error {
	x, err := s.ofExperiment(r)
	if err != nil {
		return err
	}
	at := "/experiments/" + url.PathEscape(x.Name)
	p := struct {
		top
		X      *experimentAnswer
		At     string
		Tables []tableShown
	}{top: s.topOfExperiment(x, x.Experiment.Experiment), X: x, At: at}
	for _, name := range x.Experiment.Tables {
		t := tableShown{Name: name, Link: at + "/tables/" + url.PathEscape(name)}
		if t.tablePart, err = x.table(name, 0, rowsBegun); err != nil {
			t.Error, t.tablePart = problemOf(err).Error(), nil
		} else if t.Next != nil {
			t.More = t.Link
		}
		p.Tables = append(p.Tables, t)
	}
	s.render(w, http.StatusOK, "experiment", p)
	return nil
}

func (s *Server) topOfExperiment(x *experimentAnswer, title string) top {
	t := s.top(nil, title, "experiment")
	t.Experiment, t.Folder = x.Name, x.Folder
	return t
}

func (s *Server) tablePage(w http.ResponseWriter, r *http.Request) error {
	x, err := s.ofExperiment(r)
	if err != nil {
		return err
	}
	name := r.PathValue("table")
	from, err := number(r, "cursor", 0)
	if err != nil {
		return err
	}
	part, err := x.table(name, from, 4*usualLimit)
	if err != nil {
		return err
	}
	t := tableShown{Name: name, tablePart: part}
	if part.Next != nil {
		t.More = "?" + url.Values{"cursor": {strconv.FormatInt(*part.Next, 10)}}.Encode()
	}
	s.render(w, http.StatusOK, "table", struct {
		top
		X     *experimentAnswer
		At    string
		T     tableShown
		First bool
	}{s.topOfExperiment(x, name), x, "/experiments/" + url.PathEscape(x.Name), t, r.FormValue("cursor") == ""})
	return nil
}

// fileSandbox has a browser show a file of an experiment, of which nobody knows who wrote it, and nothing else: a
// picture runs nothing and fetches nothing, wherever it is opened.
const fileSandbox = "sandbox; default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"

// experimentFile gives a picture or a table of an experiment as it lies there.
func (s *Server) experimentFile(w http.ResponseWriter, r *http.Request) error {
	x, err := s.ofExperiment(r)
	if err != nil {
		return err
	}
	name, kind := r.PathValue("file"), ""
	switch ext := strings.ToLower(filepath.Ext(name)); {
	case ext == ".svg" && slices.ContainsFunc(x.Pictures, func(p results.Picture) bool { return p.File == name }):
		kind = "image/svg+xml"
	case slices.Contains(x.Experiment.Tables, name):
		kind = "text/plain; charset=utf-8"
	default:
		return &problem{http.StatusNotFound, "The experiment has no such file", "its page names those that it has"}
	}
	data, err := results.ReadFile(x.Folder, name, results.MaxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return &problem{http.StatusNotFound, "The file is not there", "it has gone: make the experiment again"}
	}
	if err != nil {
		return &problem{http.StatusInternalServerError, "The file cannot be read", err.Error()}
	}
	w.Header().Set("Content-Security-Policy", fileSandbox)
	w.Header().Set("Content-Type", kind)
	_, _ = w.Write(data) // who asked may have gone
	return nil
}
