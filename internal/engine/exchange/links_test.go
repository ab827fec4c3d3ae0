package exchange

import (
	"testing"

	"kumo/internal/base/item"
)

// An item is valid if a node can have found it, or if its record was lost.
func TestIsWhole(t *testing.T) {
	for _, c := range []struct {
		it   item.Item
		want bool
	}{
		{item.Item{URL: "http://a.test/1"}, true},
		{item.Item{URL: "https://a.test:8443/1?b", Refetch: true, Refetches: 2, Depth: 3}, true},
		{item.Item{}, false},
		{item.Item{URL: "http://A.test/1"}, false},
		{item.Item{URL: "http://a.test/b/../1"}, false},
		{item.Item{URL: "http://a.test/1", Depth: -1}, false},
		{item.Item{URL: "http://a.test/1", Tries: 1}, false},
		{item.Item{URL: "http://a.test/robots.txt", Robots: "http://a.test"}, false},
	} {
		if is := IsValid(&c.it); is != c.want {
			t.Errorf("%+v is whole: %v", c.it, is)
		}
	}
}
