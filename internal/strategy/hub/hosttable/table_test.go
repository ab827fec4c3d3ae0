package hosttable_test

import (
	"testing"

	"kumo/internal/strategy/hub/hosttable"
)

func TestSimple(t *testing.T) {
	tab := hosttable.New(hosttable.Key{})
	want := hosttable.Row{Owner: "a~1", State: 3, Round: 4, Since: 5}
	tab.Set("example.com", want)
	if got, ok := tab.Get("example.com"); !ok || got != want || tab.Count("a~1") != 1 {
		t.Fatal(got, ok)
	}
	b := tab.AppendPart(nil, tab.Part("example.com"))
	if !tab.Delete("example.com") || tab.Len() != 0 || tab.Bytes() != 0 || tab.Count("a~1") != 0 {
		t.Fatal("not gone")
	}
	if err := tab.LoadPart(b); err != nil {
		t.Fatal(err)
	}
	if got, ok := tab.Get("example.com"); !ok || got != want {
		t.Fatal(got, ok)
	}
}
