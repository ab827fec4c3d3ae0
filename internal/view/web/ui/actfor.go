package ui

import (
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"strings"
)

// actPath is where programs have a crawl do something, below /api/v1.
const actPath = "/crawls/{crawl}/actions/{do}"

// A wish is what a program wants a crawl to do.
type wish struct {
	Value string `json:"value,omitempty"` // of an action that wants one: URLs, a line each; pages; a delay; a pattern
	Host  string `json:"host,omitempty"`  // of a host's delay
	Sure  bool   `json:"sure,omitempty"`  // without it is only said what would be done
}

// A deed is what came of a wish.
type deed struct {
	Done bool   `json:"done"`
	Says string `json:"says"`          // what was done, or would be
	New  int    `json:"new,omitempty"` // of URLs that were added, those that were new
}

// serveAPI performs actions for programs. Pages of other sites cannot have a browser send JSON here.
func (h *controls) serveAPI(w http.ResponseWriter, r *http.Request) {
	d, err := h.decode(r)
	if err != nil {
		h.out.fail(w, r, actProblem(err))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(d) // who asked may have gone
}

func (h *controls) decode(r *http.Request) (*deed, error) {
	c, a, err := h.find(r)
	if err != nil {
		return nil, err
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return nil, &problem{http.StatusUnsupportedMediaType, "Not JSON",
			"say it in JSON, with Content-Type: application/json"}
	}
	var x wish
	in := json.NewDecoder(r.Body)
	in.DisallowUnknownFields()
	if err := in.Decode(&x); err != nil {
		return nil, badRequest("the wish cannot be read: %v", err)
	}
	g := given{strings.TrimSpace(x.Value), x.Host}
	switch {
	case a.Field == "" && x.Value != "":
		return nil, badRequest("%s wants no value", a.Name)
	case !a.WantsHost && x.Host != "":
		return nil, badRequest("%s wants no host", a.Name)
	}
	d := &deed{Says: a.Says}
	if a.sure != nil {
		if d.Says, err = a.sure(g); err != nil {
			return nil, err
		}
	}
	if !x.Sure {
		if a.count {
			d.Says += ". " + c.counted(r.Context(), g)
		}
		return d, nil
	}
	came, err := h.perform(r, c, a, g, d.Says)
	if err != nil {
		return nil, err
	}
	d.Done, d.New = true, came.New
	if a.Name == "add" {
		d.Says = fmt.Sprintf("%d added, %d of them new", came.Of, came.New)
	}
	return d, nil
}
