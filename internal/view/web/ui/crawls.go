package ui

import (
	"net/http"
	"time"

	"kumo/internal/app/inspect"
)

// A crawlList is the crawls that are shown.
type crawlList struct {
	Crawls []crawlEntry `json:"crawls"`
}

type crawlEntry struct {
	Name    string         `json:"name"`              // in URLs
	Folder  string         `json:"folder"`            // "": only its cluster is shown
	Cluster bool           `json:"cluster,omitempty"` // it has several nodes, and all of them are shown, too
	State   *inspect.State `json:"state,omitempty"`   // missing: why it cannot be said is in error
	Crawl   string         `json:"crawl,omitempty"`   // as its user has called it
	Ended   string         `json:"ended,omitempty"`
	Started time.Time      `json:"started,omitzero"`
	Pages   int64          `json:"pages"`
	Bytes   int64          `json:"bytes"`
	Failed  int64          `json:"failed"`
	Waiting int            `json:"urls_waiting"`
	Error   string         `json:"error,omitempty"`
	Looking bool           `json:"looking,omitempty"` // it is being looked at: nothing is known yet
}

func (h *lister) getCrawls(r *http.Request) (any, error) {
	patience := listWait
	if len(h.crawls.all) <= shortList {
		patience = max(listPatience+listSlack, listWait)
	}
	return crawlList{h.entries(r.Context(), patience)}, nil
}

func getOverview(c *crawl, r *http.Request) (*Overview, error) {
	return c.status.overview(r.Context())
}
