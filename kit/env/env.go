// Package env owns how a process is configured: it reads environment variables, or the files they
// point to, into a typed struct, says everything that is wrong with them at once, and prints the
// help and the reference page from the same struct.
//
//	type Config struct {
//		Addr     string        `env:"PROA_AUTH_ADDR" default:":8080" help:"Address to listen on."`
//		Database env.Secret    `env:"PROA_AUTH_DATABASE_URL" required:"true" help:"PostgreSQL to keep records in."`
//		Grace    time.Duration `env:"PROA_AUTH_GRACE" default:"10s" help:"Time for open requests to end."`
//	}
//
// Any variable NAME can be given as NAME_FILE, the path of a file that holds the value. An empty
// variable counts as one that is not set.
package env

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
)

// Load fills the struct that dst points to. Structs inside it, embedded or named, are filled too.
// Every problem is in the returned error, one sentence for each variable, so that an operator
// fixes them in one round. After an error dst is partly filled and must not be used.
//
// A struct that cannot be loaded at all (a field type that is not supported, a name used twice)
// is a mistake in the program, and Load panics.
func Load(dst any, getenv func(string) string) error {
	var problems []error
	for _, f := range fields(dst) {
		if err := f.load(getenv); err != nil {
			problems = append(problems, err)
		}
	}
	return errors.Join(problems...)
}

// field is one variable of the struct.
type field struct {
	name, def, help string
	required        bool
	ptr             any // to the field
}

func (f field) secret() bool {
	_, ok := f.ptr.(*Secret)
	return ok
}

func (f field) load(getenv func(string) string) error {
	text, file := getenv(f.name), getenv(f.name+"_FILE")
	switch {
	case text != "" && file != "":
		return fmt.Errorf("%s and %s_FILE are both set: set only one of them", f.name, f.name)
	case file != "":
		b, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("%s_FILE must name a file that can be read: %w", f.name, err)
		}
		if text = strings.TrimRight(string(b), "\r\n"); text == "" {
			return fmt.Errorf("%s_FILE must name a file that is not empty: %s", f.name, file)
		}
	case text == "" && f.required:
		return fmt.Errorf("%s is required: set it to %s", f.name, expected(f.ptr))
	case text == "" && f.def == "":
		return nil
	case text == "":
		text = f.def
	}
	if parse(f.ptr, text) == nil {
		return nil
	}
	if file != "" || !mayEcho(f.ptr) {
		return fmt.Errorf("%s must be %s", f.name, expected(f.ptr))
	}
	return fmt.Errorf("%s must be %s, not %q", f.name, expected(f.ptr), text)
}

// fields lists the variables in the order of the struct.
func fields(dst any) []field {
	v := reflect.ValueOf(dst)
	if v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct {
		panic(fmt.Sprintf("env: want a pointer to a struct, got %T", dst))
	}
	all := walk(v.Elem())
	taken := map[string]bool{}
	for _, f := range all {
		if taken[f.name] || taken[f.name+"_FILE"] {
			panic("env: " + f.name + " is used twice")
		}
		taken[f.name], taken[f.name+"_FILE"] = true, true
	}
	return all
}

func walk(v reflect.Value) []field {
	var out []field
	for i := range v.NumField() {
		sf, fv := v.Type().Field(i), v.Field(i)
		name, tagged := sf.Tag.Lookup("env")
		switch {
		case tagged && !sf.IsExported():
			panic("env: " + name + " is on a field that is not exported")
		case tagged:
			f := field{
				name:     name,
				def:      sf.Tag.Get("default"),
				help:     sf.Tag.Get("help"),
				required: sf.Tag.Get("required") == "true",
				ptr:      fv.Addr().Interface(),
			}
			if expected(f.ptr) == "" {
				panic(fmt.Sprintf("env: %s has the type %s, which is not supported", name, sf.Type))
			}
			out = append(out, f)
		case sf.Type.Kind() == reflect.Struct && (sf.IsExported() || sf.Anonymous):
			out = append(out, walk(fv)...)
		}
	}
	return out
}

// Lookup reads one variable, or the file that NAME_FILE names, for a program that learns the name only when it runs.
func Lookup(name string) (string, error) {
	var value Secret
	err := field{name: name, ptr: &value}.load(os.Getenv)
	return value.Reveal(), err
}
