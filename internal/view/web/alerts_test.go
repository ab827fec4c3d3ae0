package web

import (
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
)

// The alerts of the Helm chart use only existing series.
func TestAlerts(t *testing.T) {
	text, err := os.ReadFile("../../../packaging/helm/kumo/templates/monitoring.yaml")
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	handler(everything()).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	names := regexp.MustCompile(`kumo_[a-z_]+`).FindAllString(string(text), -1)
	if len(names) < 7 {
		t.Errorf("the alerts name only %q", names)
	}
	for _, name := range names {
		if !strings.Contains(w.Body.String(), "\n# TYPE "+name+" ") {
			t.Errorf("there is no series %s", name)
		}
	}
}
