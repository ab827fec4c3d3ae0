package crawl

import (
	"testing"
	"time"

	"kumo/internal/state/transfer"
)

func chunkWriterAt(t testing.TB) *transfer.ChunkWriter {
	t.Helper()
	w, err := transfer.NewChunkWriter(time.Unix(1_900_000_000, 0).UTC(), transfer.Sizes{Block: transfer.BlockBytes,
		Chunk: transfer.ChunkBytes})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func decodeChunk(t testing.TB, data []byte) (*transfer.Chunk, error) {
	t.Helper()
	u, err := transfer.NewChunkReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	return u.Read(data)
}
