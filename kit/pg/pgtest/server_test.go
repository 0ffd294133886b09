package pgtest

import (
	"fmt"
	"testing"
	"testing/fstest"
	"time"

	"github.com/proa-dev/proa/kit/pg"
)

func TestHalfMadeTemplateIsNotCopied(t *testing.T) {
	up := fmt.Sprintf("-- +goose Up\nCREATE TABLE whole (); -- %d\n", time.Now().UnixNano())
	fsys := fstest.MapFS{"00001_start.sql": {Data: []byte(up)}}
	hash, err := fingerprint(fsys, pg.DefaultTable)
	if err != nil {
		t.Fatal(err)
	}
	s := connect(t)
	defer s.close()
	half := fmt.Sprintf("proa_test_%d_template_%s", time.Now().Unix()-5, hash)
	if err := s.exec(t.Context(), "CREATE DATABASE "+half+" TEMPLATE template0"); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.drop(t.Context(), half, ""); err != nil {
			t.Error(err)
		}
	}()

	if _, err := New(t, fsys).Exec(t.Context(), "SELECT FROM whole"); err != nil {
		t.Error(err)
	}
}

func TestFingerprint(t *testing.T) {
	file := func(name, text string) fstest.MapFS { return fstest.MapFS{name: {Data: []byte(text)}} }
	seen := map[string]string{}
	for name, c := range map[string]struct {
		fsys  fstest.MapFS
		table string
	}{
		"one":           {file("1_a.sql", "x"), "v"},
		"other content": {file("1_a.sql", "y"), "v"},
		"other name":    {file("1_b.sql", "x"), "v"},
		"other table":   {file("1_a.sql", "x"), "w"},
	} {
		got, err := fingerprint(c.fsys, c.table)
		if err != nil {
			t.Fatal(err)
		}
		if again, _ := fingerprint(c.fsys, c.table); again != got {
			t.Errorf("%s: %s and then %s", name, got, again)
		}
		if twin, ok := seen[got]; ok {
			t.Errorf("%s and %s are the same", name, twin)
		}
		seen[got] = name
	}
}
