package main

import "testing"

func TestStepOf(t *testing.T) {
	for _, tt := range []struct {
		stack []string
		want  string
	}{
		{[]string{"runtime.memmove", "kumo/internal/content/inflate.(*Decoder).fast", "kumo/internal/content/fetch.Decode"},
			"inflating bodies"},
		{[]string{"internal/runtime/syscall/linux.Syscall6", "net.(*netFD).Write",
			"kumo/internal/content/fetch.(*exchange).converse"}, "exchange: request, answer, connection"},
		{[]string{"runtime.scanObject", "runtime.gcAssistAlloc", "runtime.mallocgc",
			"kumo/internal/content/parse.(*Parser).link"},
			"garbage collection"},
		{[]string{"kumo/internal/state/ledger.(*Ledger).Put"}, "journal, commits"},
		{[]string{"kumo/internal/engine/crawl.(*worker).visit"}, "rules, limits, the visit itself"},
		{[]string{"kumo/internal/content/lang/ngram.(*Classifier).Sum"}, "language"},
		{[]string{"kumo/internal/language.X"}, restOfIt},
		{[]string{"runtime.futex", "runtime.findRunnable"}, "scheduling goroutines"},
	} {
		if got := stepOf(tt.stack); got != tt.want {
			t.Errorf("%q: %s, want %s", tt.stack, got, tt.want)
		}
	}
}
