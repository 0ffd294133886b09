package v3

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

func TestBatchesAreReadAsJSON(t *testing.T) {
	line := func(at int64, instance, source, text, kind string) LogEnvelope {
		return LogEnvelope{Timestamp: at, SourceID: "a-1", InstanceID: instance, Tags: map[string]string{"source_type": source}, Log: Log{Payload: []byte(text), Type: kind}}
	}
	var d batchDecoder
	for name, c := range map[string]struct {
		batch LogBatch
		quick bool
	}{
		"one":         {LogBatch{[]LogEnvelope{line(1, "0", "APP/PROC/WEB", "hello", "OUT")}}, true},
		"several":     {LogBatch{[]LogEnvelope{line(-5, "0", "APP/PROC/WEB", "", "OUT"), line(6, "1", "APP/PROC/WEB/SIDECAR/A B", "\x00\xff\"\\\n", "ERR"), line(6, "1", "APP/PROC/WEB", strings.Repeat("x", 70000), "OUT")}}, true},
		"none":        {LogBatch{[]LogEnvelope{}}, false},
		"odd source":  {LogBatch{[]LogEnvelope{line(1, "0", "APP/PROC/WEB/SIDECAR/\"É\u2028<&\\", "x", "OUT")}}, false},
		"another end": {LogBatch{[]LogEnvelope{line(1, "0", "APP", "x", "LEFT")}}, false},
	} {
		data, err := json.Marshal(c.batch)
		if err != nil {
			t.Fatal(err)
		}
		got, ok := d.quick(data)
		if ok != c.quick || ok && !reflect.DeepEqual(got, c.batch.Batch) {
			t.Errorf("%s: quick is %t and gives %v", name, ok, got)
		}
		if got, err := d.decode(data); err != nil || !reflect.DeepEqual(got, c.batch.Batch) {
			t.Errorf("%s: %v %v", name, got, err)
		}
		for _, other := range []string{" " + string(data), strings.Replace(string(data), ":", ": ", 3)} { // as another server may write it
			if got, err := d.decode([]byte(other)); err != nil || !reflect.DeepEqual(got, c.batch.Batch) {
				t.Errorf("%s: %v %v", name, got, err)
			}
		}
		for cut := range len(data) {
			if cut > 300 {
				break
			}
			if got, err := d.decode(data[:cut]); err == nil {
				t.Fatalf("%s: half of it gives %v", name, got)
			}
		}
	}
}

// FuzzBatches: what is read quickly is what is read slowly.
func FuzzBatches(f *testing.F) {
	for _, seed := range []string{`{"batch":[{"timestamp":"1","source_id":"a","instance_id":"0","tags":{"source_type":"APP"},"log":{"payload":"eA==","type":"OUT"}}]}`, `{"batch":[]}`, `{"batch":[{"timestamp":"1"`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var d batchDecoder
		got, ok := d.quick(data)
		if !ok {
			return
		}
		var want LogBatch
		if err := json.Unmarshal(data, &want); err != nil || fmt.Sprint(got) != fmt.Sprint(want.Batch) {
			t.Errorf("%q: %v, want %v %v", data, got, want.Batch, err)
		}
	})
}

func BenchmarkBatches(b *testing.B) {
	var batch LogBatch
	for n := range 1000 {
		batch.Batch = append(batch.Batch, LogEnvelope{Timestamp: int64(n), SourceID: "3f1f2c0e-5a0c-4f6f-8d54-6b2c8a3f9a10", InstanceID: "0", Tags: map[string]string{"source_type": "APP/PROC/WEB"}, Log: Log{Payload: []byte(strings.Repeat("x", 70)), Type: "OUT"}})
	}
	data, err := json.Marshal(batch)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(data)))
	var d batchDecoder
	for b.Loop() {
		if got, err := d.decode(data); err != nil || len(got) != 1000 {
			b.Fatal(len(got), err)
		}
	}
}
