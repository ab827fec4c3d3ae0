package rank

// Told is what links to a URL of another node's are worth, as far as that node was told, and what is kept back: as
// they become more, it is told again when they are worth a place more. So a URL to which many link is spoken of as
// often as its importance changes, and not for each link.
type Told struct {
	worth float32 // that it was told
	kept  float32
}

// Tell takes in what the other node is being told.
func (t *Told) Tell(worth float32) { t.worth += worth }

// Keep takes in a link that is worth something, of which the other node need not know for another reason, and returns
// what it is to be told now, with this link; 0 if nothing yet.
func (t *Told) Keep(worth float32) (now float32) {
	if t.kept += worth; t.kept < t.worth/Steps {
		return 0
	}
	now, t.kept = t.kept, 0
	t.worth += now
	return now
}

// Any reports whether the other node was told that links are worth something.
func (t *Told) Any() bool { return t.worth > 0 }
