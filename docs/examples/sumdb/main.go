// Reads a log at /tlog/ with the packages note and tlog of golang.org/x/mod/sumdb, the client of Go's checksum database: the
// checkpoint and its signature, the root from tiles, inclusion of records, consistency of sizes. See docs/interop.md.
//
// Usage: sumdb URL VKEY
package main

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

var base, vkey = os.Args[1], os.Args[2]

func get(path string) []byte {
	r, err := http.Get(base + "/tlog/" + path)
	check(err)
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	check(err)
	if r.StatusCode != 200 {
		panic(fmt.Sprint(path, " ", r.StatusCode))
	}
	return b
}
func check(err error) {
	if err != nil {
		panic(err)
	}
}

// tiles fetches tiles. Those of sumdb have their height in the path, which is always 8 here.
type tiles struct{ asked int }

func (t *tiles) Height() int { return 8 }
func (t *tiles) ReadTiles(ts []tlog.Tile) ([][]byte, error) {
	var out [][]byte
	for _, tile := range ts {
		t.asked++
		out = append(out, get(strings.Replace(tile.Path(), "tile/8/", "tile/", 1)))
	}
	return out, nil
}
func (t *tiles) SaveTiles([]tlog.Tile, [][]byte) {}

func main() {
	v, err := note.NewVerifier(vkey)
	check(err)
	n, err := note.Open(get("checkpoint"), note.VerifierList(v))
	check(err)
	lines := strings.Split(n.Text, "\n")
	size, err := strconv.ParseInt(lines[1], 10, 64)
	check(err)
	raw, err := base64.StdEncoding.DecodeString(lines[2])
	check(err)
	var root tlog.Hash
	copy(root[:], raw)
	tree := tlog.Tree{N: size, Hash: root}
	reader := &tiles{}
	hr := tlog.TileHashReader(tree, reader)
	got, err := tlog.TreeHash(size, hr)
	check(err)
	fmt.Println("note.Open: signed by", n.Sigs[0].Name, "size", size, "root equal", got == root)
	for i := int64(0); i < size; i += 97 {
		w := size - i/256*256
		p := fmt.Sprintf("tile/entries/%03d", i/256)
		if w < 256 {
			p += fmt.Sprintf(".p/%d", w)
		}
		b := get(p)
		data := b[(i%256)*66+2 : (i%256)*66+66]
		proof, err := tlog.ProveRecord(size, i, hr)
		check(err)
		check(tlog.CheckRecord(proof, size, root, i, tlog.RecordHash(data)))
	}
	for m := int64(1); m <= size; m += 101 {
		old, err := tlog.TreeHash(m, hr)
		check(err)
		proof, err := tlog.ProveTree(size, m, hr)
		check(err)
		check(tlog.CheckTree(proof, size, root, m, old))
	}
	fmt.Println("tlog: inclusion of every 97th record and consistency from every 101st size hold;", reader.asked, "tiles asked")
}
