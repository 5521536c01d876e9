// Makes a log of static files as c2sp.org/tlog-tiles says, with golang.org/x/mod/sumdb: its packages compute the tree and its
// tiles and sign the checkpoint. Entry i is a text that begins with the seed of the part that it is in, and has any length.
//
// Usage: makelog DIR SKEY SIZE SEED [FROM SEED]…   an entry from FROM on has the later seed
//        makelog key NAME                          prints a new SKEY and VKEY
package main

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func number(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	check(err)
	return n
}

func write(dir, path string, data []byte) {
	file := filepath.Join(dir, filepath.FromSlash(path))
	check(os.MkdirAll(filepath.Dir(file), 0o755))
	check(os.WriteFile(file, data, 0o644))
}

// entry is the data of leaf i.
func entry(i int64, seeds []string) []byte {
	seed := seeds[0]
	for k := 1; k < len(seeds); k += 2 {
		if i >= number(seeds[k]) {
			seed = seeds[k+1]
		}
	}
	return []byte(fmt.Sprintf("%s %d %s", seed, i, strings.Repeat("x", int(i%300))))
}

func main() {
	if os.Args[1] == "key" {
		skey, vkey, err := note.GenerateKey(rand.Reader, os.Args[2])
		check(err)
		fmt.Println(skey)
		fmt.Println(vkey)
		return
	}
	dir, size, seeds := os.Args[1], number(os.Args[3]), os.Args[4:]
	signer, err := note.NewSigner(os.Args[2])
	check(err)

	var hashes []tlog.Hash
	reader := tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) {
		out := make([]tlog.Hash, len(indexes))
		for i, index := range indexes {
			out[i] = hashes[index]
		}
		return out, nil
	})
	var bundle []byte
	for i := int64(0); i < size; i++ {
		data := entry(i, seeds)
		more, err := tlog.StoredHashes(i, data, reader)
		check(err)
		hashes = append(hashes, more...)
		bundle = binary.BigEndian.AppendUint16(bundle, uint16(len(data)))
		bundle = append(bundle, data...)
		if i%256 == 255 || i == size-1 {
			path := tlog.Tile{H: 8, L: 0, N: i / 256, W: int(i%256) + 1}.Path()
			write(dir, strings.Replace(path, "tile/8/0/", "tile/entries/", 1), bundle)
			bundle = nil
		}
	}
	for _, tile := range tlog.NewTiles(8, 0, size) {
		// Of the tiles on the way to this size, those that are full, and the newest partial ones.
		if nodes := size >> (8 * uint(tile.L)); tile.W < 256 && tile.N*256+int64(tile.W) != nodes {
			continue
		}
		data, err := tlog.ReadTileData(tile, reader)
		check(err)
		write(dir, strings.Replace(tile.Path(), "tile/8/", "tile/", 1), data)
	}
	root, err := tlog.TreeHash(size, reader)
	check(err)
	text := fmt.Sprintf("%s\n%d\n%s\n", signer.Name(), size, base64.StdEncoding.EncodeToString(root[:]))
	signed, err := note.Sign(&note.Note{Text: text}, signer)
	check(err)
	write(dir, "checkpoint", signed)
}
