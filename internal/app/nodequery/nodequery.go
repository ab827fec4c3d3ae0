// Package nodequery defines the queries that a client sends to all nodes of a crawl, answers them for one node, and
// merges the answers. Queries and answers are JSON; nodes of other versions ignore members that they do not know.
package nodequery

import (
	"context"
	"encoding/json"
	"errors"
)

// A Query is one query; exactly one of its members is set.
type Query struct {
	Rules  []string `json:"rules,omitempty"`  // count the pending URLs that these block rules would exclude
	Search *Search  `json:"search,omitempty"` // search the node's full-text index
}

// Encode returns the query as JSON.
func (q *Query) Encode() json.RawMessage {
	data, _ := json.Marshal(q) // cannot fail: plain members only
	return data
}

// A Part answers queries about a node's part of the crawl.
type Part struct {
	Dir string // the node's folder
	// CountBlocked counts the pending URLs that rules would exclude, and returns an inspect.Blocked in JSON.
	CountBlocked func(ctx context.Context, rules []string) ([]byte, error)
}

// Answer answers an encoded query.
func (p *Part) Answer(ctx context.Context, query json.RawMessage) ([]byte, error) {
	var q Query
	if err := json.Unmarshal(query, &q); err != nil {
		return nil, err
	}
	switch {
	case q.Search != nil:
		return json.Marshal(q.Search.run(ctx, p.Dir))
	case q.Rules != nil:
		return p.CountBlocked(ctx, q.Rules)
	}
	return nil, errors.New("unknown kind of query: this node runs an older version of kumo")
}
