package sim
import ("testing";"fmt";"time";"flag")
var dbgSeed = flag.Uint64("dbg", 46, "")
func TestDbg(t *testing.T) {
	cfg := smallMesh()
	cfg.Limit = 5*time.Minute
	w := newMeshWorld(cfg.withDefaults(), *dbgSeed)
	w.run()
	fmt.Println(w.violations, w.figures)
	for _, p := range w.live {
		m := p.peer.Machine()
		fmt.Println(p.n.name, "idle", m.Idle(), "out", p.out.Len(), "paused", p.paused, "leaving", p.leaving, "until", m.View().Until().Sub(p.now()), m.Debug())
		for h, e := range p.n.disk.engine { if e.known&^e.said != 0 {
			s := p.host(h)
			fmt.Println("   ", w.web.hosts[h].name, "waits", e.known&^(e.unsaid|e.said), "unsaid", e.unsaid, *s, "ours", p.view.Ours(w.web.hosts[h].name), m.DebugHost(w.web.hosts[h].name)) }}
	}
}
