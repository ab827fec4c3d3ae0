package frontier

import "testing"

func TestSuppressionDropsAsManyItemsAsWereSuppressed(t *testing.T) {
	s := newSuppression()
	for range 2 {
		s.add(hashURL("http://h/"))
	}
	if s.consume("http://h/other") || !s.consume("http://h/") || !s.has("http://h/") || !s.consume("http://h/") ||
		s.consume("http://h/") || !s.isEmpty() || s.total != 0 {
		t.Errorf("two items were suppressed; left: %+v", s)
	}
	s.add(hashURL("http://h/"))
	if s.clear("http://h/"); s.has("http://h/") || s.total != 0 {
		t.Errorf("after clear: %+v", s)
	}
}

// A view still drops an item whose suppression has ended since, but not an item that was suppressed and dropped before
// the view was opened.
func TestASuppressedViewStaysAsItWas(t *testing.T) {
	s := newSuppression()
	s.openView()
	s.add(hashURL("http://h/"))
	s.add(hashURL("http://h/"))
	s.consume("http://h/")
	v := s.view()
	s.consume("http://h/")
	if !v.drops("http://h/") || v.drops("http://h/") {
		t.Error("one item was suppressed when the view was opened")
	}
	if s.closeView(); s.ended != nil {
		t.Error("ended suppressions are kept without a view")
	}
}
