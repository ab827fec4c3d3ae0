package maintext

import "kumo/internal/content/lang"

// Language is the language of the main text, see [lang.Of].
func (t *Text) Language() string { return lang.Of(t.Text, t.Lang) }
