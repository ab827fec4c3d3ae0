package policy

import (
	"testing"

	"kumo/internal/base/page"
)

func TestParseUsage(t *testing.T) {
	for text, want := range map[string]string{
		"record": "record", "obey=tdm,train-ai": "obey=train-ai,tdm", "obey=ai_input": "obey=ai-input",
		"skip=search": "skip=search", "obey": "", "obey=": "", "skip=all": "", "": "", "train-ai": "", "record=tdm": "",
	} {
		u, err := ParseUsage(text)
		if got := u.String(); (err != nil) != (want == "") || err == nil && got != want {
			t.Errorf("ParseUsage(%q) is %s, %v, want %q", text, got, err, want)
		}
	}
}

func TestUsageForbidden(t *testing.T) {
	u := UsageTrainAI | UsageTDM
	for want, stated := range map[string]page.Uses{
		"": {TrainAI: "y", Search: "n", AIInput: "n"}, "train-ai": {TrainAI: "n", TDM: "n"}, "tdm": {TDM: "n"},
	} {
		if got := u.Forbidden(&stated); got != want {
			t.Errorf("%+v: %q, want %q", stated, got, want)
		}
	}
}
