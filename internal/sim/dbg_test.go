package sim
import ("testing";"fmt")
func TestDbg(t *testing.T) {
		cfg := smallMesh()
		cfg.Busy = false; cfg.NoCuts=true
		var sum MeshFigures
		for seed := uint64(1); seed <= 20; seed++ {
			DBG = seed==4
			f, vi := RunMesh(cfg, seed)
			if len(vi)>0 {fmt.Println( seed,vi)}
			sum.add(f)
		}
		fmt.Println(sum)
}
