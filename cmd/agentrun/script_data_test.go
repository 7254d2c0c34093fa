package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"agentrun/storage"
	"agentrun/storage/kv/bolt"
)

// cmdToken makes a personal access token of a user in a data directory that no
// server has, as the user could in the application.
func cmdToken(ts *testscript.TestScript, neg bool, args []string) {
	takes(ts, "token VARIABLE DATA EMAIL SCOPE...", neg, args, 4, 8)
	ctx := context.Background()
	db, err := bolt.Open(filepath.Join(ts.MkAbs(args[1]), databaseName), bolt.Options{})
	ts.Check(err)
	store, err := storage.Open(ctx, db, storage.Options{})
	ts.Check(err)
	user, err := store.FindUser(ctx, args[2])
	ts.Check(err)
	actor, err := store.UserActor(ctx, user.ID, user.Generation, "")
	ts.Check(err)
	var scopes []storage.Scope
	for _, scope := range args[3:] {
		scopes = append(scopes, storage.Scope(scope))
	}
	_, secret, err := store.CreateToken(storage.WithActor(ctx, actor), "script", scopes, time.Hour)
	ts.Check(err)
	ts.Check(store.Close())
	ts.Setenv(args[0], secret)
}

// cmdFlip flips a bit wherever a text stands in a file.
func cmdFlip(ts *testscript.TestScript, neg bool, args []string) {
	takes(ts, "flip FILE TEXT", neg, args, 2, 2)
	path := ts.MkAbs(args[0])
	raw, err := os.ReadFile(path)
	ts.Check(err)
	flipped := bytes.Clone([]byte(args[1]))
	flipped[len(flipped)/2] ^= 1
	changed := bytes.ReplaceAll(raw, []byte(args[1]), flipped)
	if bytes.Equal(changed, raw) {
		ts.Fatalf("%s is not in %s", args[1], args[0])
	}
	ts.Check(os.WriteFile(path, changed, 0o600))
}

// cmdOverflow sets a high bit of how many pages follow, in every leaf page of a
// data file that is in use. bbolt believes it, and takes memory for them all.
func cmdOverflow(ts *testscript.TestScript, neg bool, args []string) {
	takes(ts, "overflow FILE", neg, args, 1, 1)
	path := ts.MkAbs(args[0])
	raw, err := os.ReadFile(path)
	ts.Check(err)
	const leaf, flags, overflow = 2, 8, 15
	for at := 0; at < len(raw); at += os.Getpagesize() {
		page := raw[at:]
		if binary.LittleEndian.Uint16(page[flags:]) == leaf {
			page[overflow] |= 0x80
		}
	}
	ts.Check(os.WriteFile(path, raw, 0o600))
}
