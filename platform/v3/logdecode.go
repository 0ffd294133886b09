package v3

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strconv"
)

// batchDecoder reads batches of envelopes. A log may bring a hundred thousand lines in a second, and reading JSON as it may be in general is
// then most of a client's work; so it is read as this API writes it, and in general only where that does not fit. Envelopes of one source
// share their tags.
type batchDecoder struct {
	source, instance string
	tags             map[string]string
}

func (d *batchDecoder) decode(data []byte) ([]LogEnvelope, error) {
	if batch, ok := d.quick(data); ok {
		return batch, nil
	}
	var b LogBatch
	err := json.Unmarshal(data, &b)
	return b.Batch, err
}

func (d *batchDecoder) quick(data []byte) (batch []LogEnvelope, ok bool) {
	rest, ok := bytes.CutPrefix(data, []byte(`{"batch":[`))
	if !ok {
		return nil, false
	}
	payloads := make([]byte, 0, base64.StdEncoding.DecodedLen(len(rest))) // more than enough for all of them
	for {
		var e LogEnvelope
		if payloads, rest, ok = d.envelope(&e, payloads, rest); !ok {
			return nil, false
		}
		batch = append(batch, e)
		if rest, ok = bytes.CutPrefix(rest, []byte(",")); !ok {
			return batch, string(rest) == "]}"
		}
	}
}

func (d *batchDecoder) envelope(e *LogEnvelope, payloads, data []byte) (_, rest []byte, ok bool) {
	var at, source, instance, kind, payload, stream []byte
	rest = data
	for _, part := range []struct {
		before string
		value  *[]byte
	}{
		{`{"timestamp":"`, &at}, {`,"source_id":"`, &source}, {`,"instance_id":"`, &instance}, {`,"tags":{"source_type":"`, &kind},
		{`},"log":{"payload":"`, &payload}, {`,"type":"`, &stream},
	} {
		if len(rest) < len(part.before) || string(rest[:len(part.before)]) != part.before {
			return payloads, nil, false
		}
		rest = rest[len(part.before):]
		end := bytes.IndexByte(rest, '"')
		if end < 0 {
			return payloads, nil, false
		}
		*part.value, rest = rest[:end], rest[end+1:]
	}
	if rest, ok = bytes.CutPrefix(rest, []byte("}}")); !ok || bytes.ContainsAny(payload, "\r\n") || !d.fill(e, source, instance, kind) {
		return payloads, nil, false
	}
	var err error
	if e.Timestamp, err = strconv.ParseInt(string(at), 10, 64); err != nil {
		return payloads, nil, false
	}
	start := len(payloads)
	if payloads, err = base64.StdEncoding.AppendDecode(payloads, payload); err != nil {
		return payloads, nil, false
	}
	e.Log.Payload = payloads[start:len(payloads):len(payloads)]
	switch string(stream) {
	case "OUT":
		e.Log.Type = "OUT"
	case "ERR":
		e.Log.Type = "ERR"
	default:
		return payloads, nil, false
	}
	return payloads, rest, true
}

// fill takes over what is as it was in the envelope before, and refuses text that does not stand in JSON as it is.
func (d *batchDecoder) fill(e *LogEnvelope, source, instance, kind []byte) bool {
	if d.source != string(source) || d.instance != string(instance) || d.tags == nil || d.tags["source_type"] != string(kind) {
		if odd(source) || odd(instance) || odd(kind) {
			return false
		}
		d.source, d.instance, d.tags = string(source), string(instance), map[string]string{"source_type": string(kind)}
	}
	e.SourceID, e.InstanceID, e.Tags = d.source, d.instance, d.tags
	return true
}

func odd(text []byte) bool {
	return bytes.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' || r == '\\' })
}
