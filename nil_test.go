package kumo_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"kumo"
)

// A nil argument is refused with an error that names it.
func TestNothingInPlaceOfSomethingIsRefused(t *testing.T) {
	var zero kumo.Crawler
	for want, c := range map[string]*kumo.Crawler{
		"an Option is nil":          kumo.New(nil),
		"a cookie is nil":           kumo.New(kumo.Cookies("http://127.0.0.1/", nil)),
		"create a Crawler with New": &zero,
		"Header: the field follow":  kumo.New(kumo.Header("Host", "x")),
		"a kumo.Resolver sends":     kumo.New(kumo.Header("Host", "x")),
		"kumo.Cookies: ":            kumo.New(kumo.Cookies("http://127.0.0.1/", &http.Cookie{Name: "a", Value: "b"}, nil)),
	} {
		if err := c.Run(t.Context(), "http://127.0.0.1:1/"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q", err, want)
		}
	}
	s := httptest.NewServer(http.NotFoundHandler())
	defer s.Close()
	c := kumo.New()
	c.OnRequest(func(r *kumo.Request) { r.Header.Set("Te", "x") })
	if err := c.Run(t.Context(), s.URL); err == nil || !strings.Contains(err.Error(), `OnRequest: header field "Te": `) {
		t.Errorf("%v; want that the field is named", err)
	}
	if err := kumo.New().Run(nil, "http://127.0.0.1:1/"); err == nil || !strings.Contains(err.Error(), "context is nil") { //nolint:staticcheck // that is what is tested
		t.Errorf("%v; want that the context is nil", err)
	}
}
