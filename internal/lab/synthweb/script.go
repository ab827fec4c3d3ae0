package synthweb

import (
	"bytes"
	"encoding/json"
	"strconv"
)

// A page that needs script has an empty body and a script that builds it: the same links, images and frames as without
// script, and some text. All such pages of a host are of one style.

// A scriptStyle is a way in which a page is built.
type scriptStyle struct {
	name string
	body string // of the page; %N is its number, %DATA its content as a JavaScript string
	main string // of /app/0.js
}

// build adds content to the element into: an anchor for each link, and the images and frames.
const build = `function build(data, into) {
  into.innerHTML = data.text.map(t => '<p>' + t + '</p>').join('') +
    data.links.map(l => '<p style="min-height:60px"><a href="' + l + '">' + l.split('/').pop() + '</a></p>').join('') +
    data.images.map(i => '<img alt="" src="' + i + '">').join('') +
    data.frames.map(f => '<iframe src="' + f + '"></iframe>').join('')
}
function load(id) { return fetch('/data/' + document.getElementById(id).dataset.n + '.json').then(r => r.json()) }
`

const plea = "<noscript>You need to enable JavaScript to run this app.</noscript>\n"

var scriptStyles = [...]scriptStyle{
	{"app", plea + `<div id="root" data-n="%N"></div>` + "\n", "load('root').then(d => build(d, root))\n"},
	{"stream", `<div id="__next" data-n="%N"></div>` + "\n<script>self.__next_f = [];\nself.__next_f.push([1, %DATA]);" +
		"</script>\n", "build(JSON.parse(self.__next_f.map(p => p[1]).join('')), document.getElementById('__next'))\n"},
	{"scroll", plea + `<div id="app" data-n="%N"></div>` + "\n", `load('app').then(d => {
  const end = document.createElement('div'), step = 12
  build({...d, links: d.links.splice(0, step)}, app)
  app.after(end)
  new IntersectionObserver(seen => {
    if (!seen.some(e => e.isIntersecting) || d.links.length === 0) return
    const more = document.createElement('section')
    build({text: [], images: [], frames: [], links: d.links.splice(0, step)}, more)
    app.append(more)
    end.remove(); app.after(end)
  }).observe(end)
})
`},
	{"hash", plea + `<div id="app-root" data-n="%N"></div>` + "\n", `const shown = document.createElement('main')
function route(d) { if (/^(#\/?)?$/.test(location.hash)) build(d, shown) }
load('app-root').then(d => {
  document.getElementById('app-root').append(shown)
  route(d)
  addEventListener('hashchange', () => route(d))
})
`},
	{"shadow", plea + `<my-app id="mount" data-n="%N"></my-app>` + "\n", `class App extends HTMLElement {
  connectedCallback() {
    const shadow = this.attachShadow({mode: 'open'}), main = document.createElement('main')
    shadow.append(main)
    load('mount').then(d => build(d, main))
  }
}
customElements.define('my-app', App)
`},
	{"lazy", plea + `<div id="root" data-n="%N"></div>` + "\n", `load('root').then(d => {
  build({...d, images: []}, root)
  for (const src of d.images) {
    const img = document.createElement('img')
    img.dataset.src = src
    root.prepend(img)
    new IntersectionObserver((seen, o) => {
      if (!seen.some(e => e.isIntersecting)) return
      img.src = img.dataset.src
      o.disconnect()
    }).observe(img)
  }
})
`},
}

// needsScript reports whether a page is built by a script.
func (w *Web) needsScript(r Ref) bool {
	if w.cfg.ScriptShare == 0 || r.Kind != Page || w.hosts[r.Host].dead {
		return false
	}
	d := w.cfg.dice(r.Host, aboutScript, r.N)
	return d.Unit() < w.cfg.ScriptShare
}

// isPage reports whether a URL is that of an ordinary page.
func (w *Web) isPage(rawURL string) bool {
	r, ok := w.refOf(rawURL)
	return ok && r.Kind == Page
}

func (w *Web) scriptStyle(host uint32) *scriptStyle {
	return &scriptStyles[int(host)%len(scriptStyles)]
}

// ScriptStyle returns how a script builds the page at a URL: app, stream, scroll, hash, shadow or lazy; "" if none
// does. It ignores the port.
func (w *Web) ScriptStyle(rawURL string) string {
	r, ok := w.refOf(rawURL)
	if !ok || !w.needsScript(r.shown()) {
		return ""
	}
	return w.scriptStyle(r.Host).name
}

// shell writes the page at r, which its script builds.
func (t *writer) shell(r Ref) {
	t.begin(r)
	t.head(r)
	content := string(t.content())
	text, _ := json.Marshal(content) // a string
	style := t.w.scriptStyle(r.Host)
	body := bytes.ReplaceAll([]byte(style.body), []byte("%N"), strconv.AppendUint(nil, uint64(r.N), 10))
	t.made = append(t.made, bytes.ReplaceAll(body, []byte("%DATA"), text)...)
	t.text("<script type=\"module\" src=\"/app/0.js\"></script>\n</body>\n</html>\n")
	t.seal()
}

// content returns the content of the page in JSON.
func (t *writer) content() []byte {
	c := struct {
		Text   []string `json:"text"`
		Links  []string `json:"links"`
		Images []string `json:"images"`
		Frames []string `json:"frames"`
	}{Text: []string{}, Links: []string{}, Images: []string{}, Frames: []string{}}
	for range 3 {
		text := "This paragraph is about"
		for range 12 {
			text += " " + pathWords[t.d.Below(len(pathWords))]
		}
		c.Text = append(c.Text, text+".")
	}
	for _, l := range t.links {
		url := string(t.address(nil, l.Ref, false))
		switch {
		case l.via == byLink:
			c.Links = append(c.Links, url)
		case l.via == byFrame:
			c.Frames = append(c.Frames, url)
		case l.Kind == Image:
			c.Images = append(c.Images, url)
		}
	}
	data, _ := json.Marshal(&c) // plain strings
	return data
}

// scriptPart writes the data of a page or the script of its host, and returns the media type.
func (t *writer) scriptPart(r Ref) string {
	defer t.seal()
	if r.Kind == App {
		t.text(build + t.w.scriptStyle(r.Host).main)
		return "text/javascript"
	}
	t.begin(Ref{Host: r.Host, N: r.N})
	t.made = append(t.made, t.content()...)
	return "application/json"
}
