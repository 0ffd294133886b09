package main

import (
	"strings"
	"testing"
)

func TestVerdict(t *testing.T) {
	half := aim{of: "ratio", is: ">=", bound: 0.5}
	small := aim{of: "ours", is: "<", bound: 200, unit: " MB"}
	flat := aim{of: "ours", is: "<=", bound: 1.5}
	for _, c := range []struct {
		ours, bare float64
		aim        aim
		want       string
	}{
		{500, 1000, half, "met"},
		{499, 1000, half, "missed"},
		{199, 1, small, "met"},
		{200, 1, small, "missed"},
		{1.5, 1, flat, "met"},
		{1.6, 2, flat, "missed"},
		{1, 1, aim{}, "-"},
	} {
		l := line{name: "x", ours: quantity{c.ours, "a"}, bare: quantity{c.bare, "b"}, aim: c.aim}
		if !strings.HasSuffix(l.String(), " "+c.want) {
			t.Errorf("%s: want %s", l, c.want)
		}
	}
}

func TestLineIsReadByColumns(t *testing.T) {
	l := line{name: "auth.x", ours: quantity{1234.5, "tokens/s"}, bare: quantity{2469, "signatures/s"}, aim: aim{of: "ratio", is: ">=", bound: 0.5}, notes: []string{"why", "how"}}
	got := strings.Fields(strings.ReplaceAll(l.String(), "\n", " | "))
	want := strings.Fields("auth.x 1,234 tokens/s 2,469 signatures/s 0.50 ratio >= 0.5 met | # why | # how")
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("got %q", got)
	}
}

func TestNumber(t *testing.T) {
	for value, want := range map[float64]string{0.9512: "0.951", 12.34: "12.3", 99.96: "100", 100.4: "100", 999: "999", 1000: "1,000", 1_000_001: "1,000,001"} {
		if got := number(value); got != want {
			t.Errorf("%v is %s, want %s", value, got, want)
		}
	}
}

func TestMedian(t *testing.T) {
	if got := median([]float64{9, 1, 2}); got != 2 {
		t.Errorf("of three: %v", got)
	}
	if got := median([]float64{9, 1, 2, 4}); got != 3 {
		t.Errorf("of four: %v", got)
	}
}

func TestChoose(t *testing.T) {
	if all, err := choose(nil); err != nil || len(all) != len(figures) {
		t.Errorf("got %d, %v", len(all), err)
	}
	if one, err := choose([]string{"auth.walk_users"}); err != nil || len(one) != 1 || one[0].name != "auth.walk_users" {
		t.Errorf("got %v, %v", one, err)
	}
	if _, err := choose([]string{"auth.walk_users", "nothing"}); err == nil {
		t.Error("an unknown name is taken")
	}
}
