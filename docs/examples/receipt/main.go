// Checks a proof file (c2sp.org/tlog-proof) with the packages note and tlog of golang.org/x/mod/sumdb: the signature of the
// checkpoint, and the entry's place in its tree. See docs/interop.md.
//
// Usage: receipt FILE VKEY ENTRY_HASH
package main

import (
	"encoding/base64"
	"fmt"
	"os"
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

func hash(text string) (h tlog.Hash) {
	raw, err := base64.StdEncoding.DecodeString(text)
	check(err)
	if copy(h[:], raw) != tlog.HashSize {
		panic("a hash has 32 bytes")
	}
	return h
}

func main() {
	file, err := os.ReadFile(os.Args[1])
	check(err)
	head, checkpoint, _ := strings.Cut(string(file), "\n\n")
	var index int64 = -1
	var proof tlog.RecordProof
	for i, line := range strings.Split(head, "\n") {
		switch {
		case i == 0 && line == "c2sp.org/tlog-proof@v1":
		case i > 0 && strings.HasPrefix(line, "extra "):
		case i > 0 && strings.HasPrefix(line, "index "):
			index, err = strconv.ParseInt(line[len("index "):], 10, 64)
			check(err)
		case index >= 0:
			proof = append(proof, hash(line))
		default:
			panic("this is not a proof file: " + line)
		}
	}
	verifier, err := note.NewVerifier(os.Args[2])
	check(err)
	signed, err := note.Open([]byte(checkpoint), note.VerifierList(verifier))
	check(err)
	lines := strings.Split(signed.Text, "\n")
	size, err := strconv.ParseInt(lines[1], 10, 64)
	check(err)
	leaf := tlog.RecordHash([]byte(os.Args[3]))
	check(tlog.CheckRecord(proof, size, hash(lines[2]), index, leaf))
	fmt.Printf("leaf %d is in the tree of %d entries, signed by %s\n", index, size, signed.Sigs[0].Name)
}
